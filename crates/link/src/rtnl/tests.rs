use super::*;

#[test]
fn builder_pads_and_nests_as_the_kernel_expects() {
    let message = Builder::new(&[0xaa; 4]).text(3, "ab").nested(18, Builder::default().u8(5, 7)).finish();
    let expected = if cfg!(target_endian = "little") {
        vec![0xaa, 0xaa, 0xaa, 0xaa, 7, 0, 3, 0, b'a', b'b', 0, 0, 12, 0, 18, 0x80, 5, 0, 5, 0, 7, 0, 0, 0]
    } else {
        vec![0xaa, 0xaa, 0xaa, 0xaa, 0, 7, 0, 3, b'a', b'b', 0, 0, 0, 12, 0x80, 18, 0, 5, 0, 5, 7, 0, 0, 0]
    };
    assert_eq!(message, expected);
    let list: Vec<_> = attributes(&message, 4).map(|(kind, value)| (kind, value.len())).collect();
    assert_eq!(list, [(3, 3), (18, 8)]);
    assert_eq!(attribute(&message, 4, 3).map(text), Some("ab".into()));
}

#[test]
fn attributes_survive_any_bytes() {
    // Lengths of 0, below the header, beyond the end, and a cut header: each ends the walk.
    for bytes in [&[0u8, 0, 0, 0][..], &[3, 0, 1, 0], &[200, 0, 1, 0, 1], &[8, 0, 1], &[]] {
        assert_eq!(attributes(bytes, 0).count(), 0, "{bytes:?}");
    }
    assert_eq!(attributes(&[1, 2], 16).count(), 0);
    // Without its padding at the end of the message an attribute still counts.
    let short = Builder::default().u8(9, 1).finish();
    assert_eq!(attributes(&short[..5], 0).collect::<Vec<_>>(), [(9, &[1u8][..])]);
}
