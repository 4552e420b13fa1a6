use super::*;
use roxmltree::Document;

fn spread(median: f64, min: f64, max: f64) -> Spread {
    Spread { median, min, max }
}

fn figure() -> Figure {
    let one = Series {
        name: "cubic <1> & \"more\"".into(),
        points: vec![(1.0, spread(10.0, 9.0, 11.0)), (4.0, spread(40.0, 30.0, 44.0))],
    };
    let two = Series { name: "udp".into(), points: vec![(2.0, spread(20.0, 20.0, 20.0))] };
    let lines = Panel::over([1.0, 2.0, 3.0, 4.0])
        .curve(&one.name, one.points.clone())
        .curve(&two.name, two.points)
        .reference("N x one", vec![(1.0, 10.0), (4.0, 40.0)])
        .titled("left", "members N", "Mbit/s");
    let bars = Panel {
        title: "right".into(),
        ..Panel::bars(
            vec!["g1".into(), "g2".into()],
            vec![Series {
                name: "bars".into(),
                points: vec![(0.0, spread(1.0, 0.5, 1.5)), (1.0, spread(2.0, 2.0, 2.0))],
            }],
        )
    };
    Figure { title: "both".into(), panels: vec![lines, bars] }
}

/// All texts of a document.
fn texts(document: &Document<'_>) -> Vec<String> {
    let nodes = document.descendants().filter(|node| node.has_tag_name("text"));
    nodes.filter_map(|node| Some(node.text()?.trim().to_owned())).collect()
}

fn count(document: &Document<'_>, tag: &str, colour: &str) -> usize {
    let has = |node: &roxmltree::Node<'_, '_>| {
        node.has_tag_name(tag) && [node.attribute("fill"), node.attribute("stroke")].contains(&Some(colour))
    };
    document.descendants().filter(has).count()
}

#[test]
fn a_figure_is_well_formed_and_has_every_series() {
    let text = svg(&figure(), "some machine").expect("draws");
    let document = Document::parse(&text).expect("well-formed XML");
    let texts = texts(&document);
    for wanted in [
        "both",
        "some machine",
        "left",
        "right",
        "members N",
        "Mbit/s",
        "cubic <1> & \"more\"",
        "udp",
        "N x one",
        "bars",
        "g1",
        "g2",
        "1",
        "2",
        "4",
        "bars from min to max",
    ] {
        assert!(texts.iter().any(|text| text == wanted), "'{wanted}' is not in {texts:?}");
    }
    // Of the first panel: a point for each value, and a mark in the legend.
    assert_eq!(count(&document, "circle", "#0072B2"), 2, "{text}");
    assert_eq!(count(&document, "circle", "#D55E00"), 1, "{text}");
    // Of the second: two bars and its mark; and the mark of the first one's first series.
    assert_eq!(count(&document, "rect", "#0072B2"), 4, "{text}");
    assert_eq!(count(&document, "rect", "#D55E00"), 1, "{text}");
}

#[test]
fn error_bars_are_drawn_where_values_differ() {
    let mut figure = figure();
    figure.panels.truncate(1);
    let lines = |figure: &Figure| {
        let text = svg(figure, "").expect("draws");
        count(&Document::parse(&text).expect("well-formed XML"), "polyline", "#0072B2")
    };
    let with = lines(&figure);
    figure.panels[0].series[0].points.iter_mut().for_each(|(_, s)| *s = spread(s.median, s.median, s.median));
    assert!(with > lines(&figure), "{with}");
}

#[test]
fn nothing_measured_is_still_a_picture() {
    let empty = Figure { title: "none".into(), panels: vec![Panel::over([]), Panel::bars(vec![], vec![])] };
    let text = svg(&empty, "").expect("draws");
    Document::parse(&text).expect("well-formed XML");
    Document::parse(&svg(&Figure { title: "t".into(), panels: vec![] }, "").expect("draws"))
        .expect("well-formed");
}

#[test]
fn axes_hold_all_values() {
    let panel = &figure().panels[0];
    let (low, high) = panel.x_range();
    assert!(low < 1.0 && high > 4.0);
    assert!(panel.y_range().1 > 44.0);
}

#[test]
fn a_curve_is_drawn_whole_and_without_a_mark_for_each_point() {
    let points = (-300..2000).map(|x| (f64::from(x), Spread::one(f64::from(x % 7)))).collect();
    let panel = Panel::curves(vec![0.0, 1000.0], vec![Series { name: "goodput".into(), points }]);
    let (low, high) = panel.x_range();
    assert!(low < -300.0 && high > 1999.0, "{low} to {high}");
    let text = svg(&Figure { title: "curve".into(), panels: vec![panel] }, "").expect("draws");
    let document = Document::parse(&text).expect("well-formed XML");
    assert_eq!(document.descendants().filter(|node| node.has_tag_name("circle")).count(), 0);
    assert!(texts(&document).iter().any(|text| text == "1000"), "{text}");
}

#[test]
fn decades_are_labelled_and_hold_values_of_any_size() {
    let points = vec![(0.0, spread(70.0, 60.0, 90.0)), (1.0, spread(20_000.0, 9000.0, 30_000.0))];
    let bars = vec![Series { name: "bars".into(), points }];
    let panel = Panel { decades: true, ..Panel::bars(vec!["g1".into(), "g2".into()], bars) };
    assert_eq!(panel.clone().scaled().y_range(), (1.0, 5.0));
    let text = svg(&Figure { title: "t".into(), panels: vec![panel] }, "").expect("draws");
    let document = Document::parse(&text).expect("well-formed XML");
    let texts = texts(&document);
    for wanted in ["10", "100", "1000", "10000", "100000"] {
        assert!(texts.iter().any(|text| text == wanted), "{wanted} in {texts:?}");
    }
}
