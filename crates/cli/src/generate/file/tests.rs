use super::{config, meaning, option, page};
use crate::{args::Cli, generate::visible};
use clap::CommandFactory as _;

#[test]
fn every_key_of_the_file_is_explained() {
    let mut command = visible(Cli::command());
    command.build();
    let text = page(&command).to_roff();
    for ((table, keys), (_, words)) in config::tables().into_iter().zip(super::TABLES) {
        for key in keys {
            let meaning = meaning(table, &key, option(&command, words, &key));
            assert!(meaning.len() > 5, "'{key}' of [{table}] has no explanation");
            assert!(text.contains(&key.replace('-', "\\-")), "'{key}' in {text}");
        }
    }
    assert!(text.contains("eth1") && text.contains(".SH EXAMPLE"), "{text}");
}
