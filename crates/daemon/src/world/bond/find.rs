//! What a bond has by its names.

use super::Bond;
use crate::io::state::SavedAbsent;
use linkbraid_api::ClassName;

impl Bond {
    /// Members that are to come back and have not yet begun to.
    pub(crate) fn absent(&self) -> impl Iterator<Item = &SavedAbsent> {
        self.saved.absent.iter().filter(|absent| self.member(&absent.name).is_none())
    }

    /// The number of a class by its name.
    pub(crate) fn class_number(&self, name: &str) -> Option<u8> {
        self.saved.classes.iter().find(|class| class.name == *name).map(|class| class.number)
    }

    /// The name of a class by its number; none for 0.
    pub(crate) fn class_name(&self, number: u8) -> Option<ClassName> {
        self.saved.classes.iter().find(|class| class.number == number).map(|class| class.name.clone())
    }
}
