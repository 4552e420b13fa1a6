//! The page in a real browser, as wide as a telephone and as wide as a screen.

use super::of;
use crate::EXPERIMENTS;
use crate::report::Report;
use crate::report::tests::report;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Holds the page in a frame of a given width and writes what it sees of it: a window cannot be as narrow.
const LOOK: &str = r#"<!DOCTYPE html><meta charset="utf-8"><title>look</title>
<iframe id="page" src="page.html" style="width:WIDTHpx;height:900px;border:0"></iframe><pre id="seen"></pre>
<script>
const errors = [];
addEventListener("load", () => {
  const inside = document.getElementById("page").contentDocument;
  const root = inside.documentElement;
  const wide = [...inside.querySelectorAll("body *")]
    .filter(e => !e.closest(".scroll, pre, svg, details:not([open])") && e.getBoundingClientRect().right > root.clientWidth + 1)
    .map(e => e.tagName + " " + e.textContent.slice(0, 40));
  const plots = [...inside.querySelectorAll("svg")];
  const drawn = plots.filter(svg => {
    const box = svg.getBoundingClientRect();
    return box.width > 200 && box.height > 100 && svg.querySelectorAll("rect, circle, polyline, path").length > 3;
  });
  document.getElementById("seen").textContent = JSON.stringify({
    width: root.clientWidth, scroll: root.scrollWidth, wide, plots: plots.length, drawn: drawn.length,
    sections: inside.querySelectorAll("section").length, errors });
});
addEventListener("error", e => errors.push(e.message), true);
</script>"#;

/// A profile and a folder of its own, which go when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("linkbraid-page-{}", std::process::id()));
        fs::create_dir_all(&path).expect("made");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn look(folder: &Path, width: u32) -> serde_json::Value {
    let file = folder.join(format!("look-{width}.html"));
    fs::write(&file, LOOK.replace("WIDTH", &width.to_string())).expect("written");
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--allow-file-access-from-files",
        ])
        .arg("--virtual-time-budget=10000")
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("chromium is installed: scripts/deps.sh test");
    let dom = String::from_utf8_lossy(&output.stdout);
    let seen = dom.split("<pre id=\"seen\">").nth(1).and_then(|rest| rest.split("</pre>").next());
    let seen = seen.unwrap_or_else(|| panic!("{dom}\n{}", String::from_utf8_lossy(&output.stderr)));
    serde_json::from_str(&seen.replace("&gt;", ">").replace("&lt;", "<").replace("&amp;", "&"))
        .unwrap_or_else(|e| panic!("{e}: {seen}"))
}

#[test]
fn every_plot_is_drawn_and_nothing_overflows_a_telephone() {
    let folder = Folder::new();
    let all =
        EXPERIMENTS.iter().map(|e| Report { experiment: e.name.into(), about: e.about.into(), ..report() });
    let page = of(all.collect());
    fs::write(folder.0.join("page.html"), &page).expect("written");
    let plots = page.matches("<svg").count();
    assert!(plots > 3, "{plots}");
    for width in [390, 1200] {
        let seen = look(&folder.0, width);
        assert_eq!(seen["sections"], EXPERIMENTS.len(), "{seen}");
        assert_eq!(seen["errors"], serde_json::json!([]), "{seen}");
        assert_eq!(seen["wide"], serde_json::json!([]), "{seen}");
        assert!(seen["scroll"].as_u64() <= seen["width"].as_u64(), "{seen}");
        assert_eq!((&seen["plots"], &seen["drawn"]), (&plots.into(), &plots.into()), "{seen}");
    }
}
