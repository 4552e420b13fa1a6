//! Where messages spend their time on the way out, by the meter of the data path: from the application to the bond, and from the
//! bond to the NIC's driver, which is where they wait behind others. The papers call these 'application to driver' and 'driver
//! to NIC', and both together 'application to NIC'. In a turn of its own, since measuring costs each frame a little.

use super::scenario::{LEAD, TAIL};
use crate::bed::BOND;
use crate::experiments::prelude::*;
use crate::flow::{MessageFlow, Messages};
use linkbraid_api::LatencyRecord;
use linkbraid_lab::iperf;
use serde_json::{Map, Value, json};

/// The stages that `linkbraid stats --latency` has of a class at the sender, while bulk traffic fills its links. `rest`, the default
/// class, has that traffic in it.
pub(super) fn measure(
    run: &Run<'_>,
    [bed, bulk_bed]: [&Bed; 2],
    bulk: Traffic,
    messages: Messages,
    class: &str,
) -> Result<Value, Error> {
    let (a, b) = (bed.host("a")?, bed.host("b")?);
    let flow = MessageFlow::start(a, b, messages)?;
    let bulk = iperf::start(bulk_bed.host("a")?, bulk_bed.host("b")?, &bulk)?;
    run.pause(Duration::from_secs(run.settings.omit.into()) + LEAD)?;
    a.linkbraid(&format!("bond set {BOND} --latency on"))?;
    run.pause(Duration::from_secs(run.settings.seconds.into()).saturating_sub(LEAD + TAIL))?;
    let rows: Result<Vec<LatencyRecord>, Error> = a.ask(&format!("stats --latency {BOND}"));
    a.linkbraid(&format!("bond set {BOND} --latency off"))?;
    flow.stop()?;
    bulk.finish()?;
    let of_class = rows?.into_iter().filter(|row| row.class == class && row.count > 0);
    Ok(Value::Object(of_class.map(|row| (row.stage.clone(), figures(&row))).collect::<Map<_, _>>()))
}

fn figures(row: &LatencyRecord) -> Value {
    let us = |ns: u64| ns as f64 / 1e3;
    json!({
        "count": row.count,
        "min_us": us(row.min_ns),
        "mean_us": us(row.mean_ns),
        "stddev_us": us(row.stddev_ns),
        "max_us": us(row.max_ns),
    })
}
