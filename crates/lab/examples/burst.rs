//! What the burst of a link costs: the share of its rate that one TCP flow reaches, by rate and burst.
//! `cargo run -p linkbraid-lab --example burst [RATE...]`, as root. The rules in `shape.rs` come from its output.

use linkbraid_api::Error;
use linkbraid_lab::iperf::Cc;
use linkbraid_lab::{Lab, Options, Topology, check_base_rate};

fn main() -> Result<(), Error> {
    let rates: Vec<u32> = std::env::args().skip(1).filter_map(|word| word.parse().ok()).collect();
    let rates = if rates.is_empty() { vec![20, 100, 200, 500, 1000] } else { rates };
    println!("{:>10} {:>8} {:>10} {:>8} {:>8}", "Mbit/s", "us", "bytes", "cubic", "bbr");
    for rate in rates {
        for us in [150, 300, 600, 1200] {
            let burst = (rate * us / 8).max(2 * 1514);
            let options = Options { burst_bytes: Some(burst), ..Options::default() };
            let lab = Lab::up(Topology::symmetric(2, 1, Some(rate)).with(options))?;
            let (a, b) = (lab.host("a")?, lab.host("b")?);
            let share = |cc| check_base_rate(a, b, cc, 2).map(|base| base.share);
            println!("{rate:>10} {us:>8} {burst:>10} {:>8.3} {:>8.3}", share(Cc::Cubic)?, share(Cc::Bbr)?);
        }
    }
    Ok(())
}
