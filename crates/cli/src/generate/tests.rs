use super::{SHELLS, all_pages, script, visible};
use crate::args::Cli;
use clap::CommandFactory;

#[test]
fn every_word_has_a_page_and_hidden_words_have_none() {
    let dir = std::env::temp_dir().join(format!("linkbraid-man-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let mut command = visible(Cli::command());
    command.build();
    all_pages(&command, &dir).unwrap();
    let mut names = std::fs::read_dir(dir.join("man8"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect::<Vec<_>>();
    names.sort();
    let page = std::fs::read_to_string(dir.join("man8/linkbraid-bond-add.8")).unwrap();
    let run = std::fs::read_to_string(dir.join("man8/linkbraid-run.8")).unwrap();
    let file = std::fs::read_to_string(dir.join("man5/linkbraid.toml.5")).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    assert!(file.starts_with(".ie ") || file.contains(".TH linkbraid.toml 5"), "{file}");
    for name in ["linkbraid.8", "linkbraid-bond.8", "linkbraid-bond-add.8", "linkbraid-member-set.8"] {
        assert!(names.iter().any(|found| found == name), "{name} is missing in {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("completions") || name.contains("-man")), "{names:?}");
    assert!(page.contains("0 done, 1 refused") && run.contains("That of the command; if"), "{run}");
    for heading in ["SYNOPSIS", "OPTIONS", "EXAMPLES", "EXIT STATUS", "ENVIRONMENT", "FILES"] {
        assert!(
            page.lines().any(|line| line.trim_start_matches(".SH ").trim_matches('"') == heading),
            "no {heading} in:\n{page}"
        );
    }
}

#[test]
fn completions_know_the_words_but_not_the_hidden_ones() {
    for (shell, _) in SHELLS {
        let text = String::from_utf8(script(shell)).unwrap();
        assert!(text.contains("move-address"), "{shell}");
        assert!(!text.contains("completions of one shell"), "{shell} offers a hidden word");
    }
}

/// The help of `command` and of every word below it, as one page.
fn reference(command: &clap::Command, page: &mut String) {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).replace('-', " ");
    let help = command.clone().term_width(80).render_long_help().to_string();
    let help = help.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    page.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", help.trim_end()));
    for word in command.get_subcommands() {
        reference(word, page);
    }
}

/// `UPDATE=1 cargo test -p linkbraid-cli reference` writes the page again.
#[test]
fn the_reference_page_is_the_help() {
    let mut command = visible(Cli::command());
    command.build();
    let mut page =
        "# The command\n\nMade from the command's own help; a test keeps the two equal.\n".to_owned();
    reference(&command, &mut page);
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/command.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).expect("docs/reference/command.md is there");
    assert!(
        written == page,
        "docs/reference/command.md is stale; write it with UPDATE=1 cargo test -p linkbraid-cli reference"
    );
}
