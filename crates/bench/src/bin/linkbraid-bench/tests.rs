use super::{Cli, Word, chosen};
use clap::{CommandFactory, Parser};
use linkbraid_terminal::args::bench::BenchVerb;

/// The experiments that a command line asks for; none where it asks for something else.
fn names(line: &str) -> Vec<&'static str> {
    let Word::Bench(verb) = Cli::try_parse_from(line.split_whitespace()).expect(line).word;
    let BenchVerb::Run(args) = verb else { return Vec::new() };
    let chosen = chosen(&args.names).unwrap_or_else(|failed| panic!("{line}: {}", failed.error));
    chosen.iter().map(|experiment| experiment.name).collect()
}

#[test]
fn each_experiment_is_chosen_once() {
    assert_eq!(names("linkbraid bench run overhead scaling overhead"), ["scaling", "overhead"]);
    assert!(names("linkbraid bench run all").len() > 10);
}

#[test]
fn examples_name_experiments_that_are_there() {
    let command = Cli::command();
    let bench = command.find_subcommand("bench").expect("its word");
    let helps = std::iter::once(bench).chain(bench.get_subcommands());
    let help: Vec<String> = helps.filter_map(|word| word.get_after_help()).map(ToString::to_string).collect();
    let help = help.join("\n");
    let pages = [help.as_str(), include_str!("../../../../../docs/benchmarks.md")];
    for page in pages {
        let lines = page.lines().map(str::trim_start).filter(|line| line.starts_with("linkbraid bench "));
        let named = lines.flat_map(|line| names(line.split("   ").next().unwrap_or_default())).count();
        assert!(named > 10, "{page}");
    }
}
