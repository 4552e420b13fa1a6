//! The loop that joins the protocols to the machine.
