//! What the programs know of plain hosts, and are told about them.

use crate::{DataPath, error::Result};

impl DataPath {
    /// The plain hosts heard while the bond had several segments, each with a slot of the segment it was heard on; at
    /// most 8192, those heard or sent to most recently. Who was heard before the segments changed stays until then.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn plain_hosts(&self) -> Result<Vec<([u8; 6], u8)>> {
        let rows = self.mac_rows::<u32>("lb_plain_hosts")?;
        Ok(rows.into_iter().map(|(mac, slot)| (mac, slot as u8)).collect())
    }
}
