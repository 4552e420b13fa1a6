//! What a bond has by its names, and what it has not.

use super::{Bond, Member};
use crate::io::state::SavedAbsent;
use linkbraid_api::Error;

impl Bond {
    /// Members that are to come back and have not yet begun to.
    pub(crate) fn absent(&self) -> impl Iterator<Item = &SavedAbsent> {
        self.saved.absent.iter().filter(|absent| self.member(&absent.name).is_none())
    }

    /// A member by its name, or why there is none.
    pub(crate) fn find(&self, name: &str) -> Result<Member, Error> {
        self.member(name).ok_or_else(|| {
            let members: Vec<String> = self.members().into_iter().map(|member| member.name).collect();
            let cause = format!("its members are {}", members.join(", "));
            Error::new(&self.saved.name, format!("no member '{name}'"), cause)
                .hint(format!("linkbraid show {}", self.saved.name))
        })
    }

    /// The number of a class by its name.
    pub(crate) fn class_number(&self, name: &str) -> Option<u8> {
        self.saved.classes.iter().find(|class| class.name == name).map(|class| class.number)
    }

    /// The name of a class by its number; none for 0.
    pub(crate) fn class_name(&self, number: u8) -> Option<String> {
        self.saved.classes.iter().find(|class| class.number == number).map(|class| class.name.clone())
    }

    /// Says that there is no such class.
    pub(crate) fn no_class(&self, name: &str) -> Error {
        let names: Vec<&str> = self.saved.classes.iter().map(|class| class.name.as_str()).collect();
        let cause = match names.is_empty() {
            true => "there are no classes".to_owned(),
            false => format!("the classes are {}", names.join(", ")),
        };
        Error::new(&self.saved.name, format!("no class '{name}'"), cause)
            .hint(format!("linkbraid class show {}", self.saved.name))
    }
}
