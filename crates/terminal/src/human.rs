//! Numbers with readable units.

/// A rate: `250 Mbit/s`, `2.5 Gbit/s`.
pub fn rate(mbit: u32) -> String {
    if mbit < 1000 {
        return format!("{mbit} Mbit/s");
    }
    let text = format!("{:.2}", f64::from(mbit) / 1000.0);
    format!("{} Gbit/s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A rate that was measured: `874 kbit/s`, `18.9 Mbit/s`, `942 Mbit/s`, `2.36 Gbit/s`.
pub fn measured_rate(kbit: u32) -> String {
    match kbit {
        0..1000 => format!("{kbit} kbit/s"),
        1000..100_000 => format!("{:.1} Mbit/s", f64::from(kbit) / 1000.0),
        _ => rate((kbit + 500) / 1000),
    }
}

/// An amount of bytes in decimal units, as links count: `999 B`, `12.3 GB`.
pub fn bytes(count: u64) -> String {
    scaled(count, &["B", "kB", "MB", "GB", "TB", "PB", "EB"])
}

/// A number of frames: exact while it is short, `1.2 M` beyond.
pub fn frames(count: u64) -> String {
    if count < 100_000 { count.to_string() } else { scaled(count, &["", "k", "M", "G", "T", "P", "E"]) }
}

/// A stripe or buffer in binary units where they fit: `16 KiB`, `4400 B`.
pub fn buffer(bytes: u32) -> String {
    if bytes >= 1024 && bytes.is_multiple_of(1024) {
        format!("{} KiB", bytes >> 10)
    } else {
        format!("{bytes} B")
    }
}

/// A span: `250 ms`, `12 s`, `3 min`, `5 h`.
pub fn span(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms} ms"),
        1000..120_000 => format!("{} s", ms / 1000),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

/// A setting in milliseconds, exactly: `50 ms`, `1 s`, `1500 ms`.
pub fn setting(ms: u64) -> String {
    if ms >= 1000 && ms.is_multiple_of(1000) { format!("{} s", ms / 1000) } else { format!("{ms} ms") }
}

/// How long something took, to two or three digits: `85 us`, `3.2 ms`, `128 ms`, `1.5 s`, `42 s`, `3 min`.
pub fn took(us: u64) -> String {
    match us {
        0..1000 => format!("{us} us"),
        // What is cut off here would be printed as 10.0 and 1000.
        1000..9_950 => format!("{:.1} ms", us as f64 / 1e3),
        9_950..999_500 => format!("{:.0} ms", us as f64 / 1e3),
        999_500..9_950_000 => format!("{:.1} s", us as f64 / 1e6),
        9_950_000..120_000_000 => format!("{:.0} s", us as f64 / 1e6),
        _ => span(us / 1000),
    }
}

/// Nanoseconds as microseconds, to three digits at least: `0.25`, `12.3`, `1234`.
pub fn microseconds(ns: u64) -> String {
    let us = ns as f64 / 1e3;
    match ns {
        // What is cut off here would be printed as 10.00 and 100.0.
        0..9_995 => format!("{us:.2}"),
        9_995..99_950 => format!("{us:.1}"),
        _ => format!("{us:.0}"),
    }
}

/// Text in lines of at most `width` characters, broken at spaces alone; a word that is longer has its own line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// Parts of a million as a percentage: `25.0 %`.
pub fn percent(ppm: u32) -> String {
    format!("{:.1} %", f64::from(ppm) / 10_000.0)
}

/// `1 peer`, `2 peers`.
pub fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

fn scaled(count: u64, units: &[&str]) -> String {
    if count < 1000 {
        return format!("{count} {}", units[0]).trim_end().to_owned();
    }
    let mut value = count as f64;
    let mut step = 0;
    // 999.95 would be printed as 1000.0.
    while value >= 999.95 && step + 1 < units.len() {
        value /= 1000.0;
        step += 1;
    }
    format!("{value:.1} {}", units[step])
}

#[cfg(test)]
mod tests;
