//! Families and their series, as text.

use prometheus_client::{
    encoding::{
        DescriptorEncoder, EncodeLabel as _, EncodeLabelSet, LabelSetEncoder, MetricEncoder, NoLabelSet,
    },
    metrics::MetricType,
};
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// The values of a family's labels, in order. An empty one stands for a label that is absent.
pub(crate) type Labels<'a, const N: usize> = [Cow<'a, str>; N];

/// Series of one name. The name begins with `linkbraid_`, and ends with `_total` for counters and `_info` for infos; neither is
/// written here.
pub(crate) struct Family<const N: usize> {
    pub name: &'static str,
    pub help: &'static str,
    pub labels: [&'static str; N],
}

/// How many of what was measured are in which range.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Distribution {
    /// Upper limits, lowest first, and how many are between the limit before and this one. The last limit is infinite.
    pub buckets: Vec<(f64, u64)>,
    pub sum: f64,
}

/// Where the families go. One without series is left out; of series with the same labels only the first one counts, because two
/// would make the whole scrape invalid.
pub(crate) struct Writer<'e>(DescriptorEncoder<'e>);

impl<'e> Writer<'e> {
    pub(crate) const fn new(encoder: DescriptorEncoder<'e>) -> Self {
        Self(encoder)
    }

    /// Values that go up and down.
    pub(crate) fn gauges<'a, const N: usize>(
        &mut self,
        family: &Family<N>,
        series: impl IntoIterator<Item = (Labels<'a, N>, f64)>,
    ) -> fmt::Result {
        self.family(family, MetricType::Gauge, series, |mut to, value| to.encode_gauge(value))
    }

    /// Values that only grow, until what they count begins anew.
    pub(crate) fn counters<'a, const N: usize>(
        &mut self,
        family: &Family<N>,
        series: impl IntoIterator<Item = (Labels<'a, N>, f64)>,
    ) -> fmt::Result {
        self.family(family, MetricType::Counter, series, |mut to, value| {
            to.encode_counter::<NoLabelSet, _, f64>(value, None)
        })
    }

    /// Durations by their length.
    pub(crate) fn histograms<'a, const N: usize>(
        &mut self,
        family: &Family<N>,
        series: impl IntoIterator<Item = (Labels<'a, N>, Distribution)>,
    ) -> fmt::Result {
        self.family(family, MetricType::Histogram, series, |mut to, value| {
            let count = value.buckets.iter().map(|(_, count)| count).sum();
            to.encode_histogram::<NoLabelSet>(value.sum, count, &value.buckets, None)
        })
    }

    /// Facts in labels, with the value 1.
    pub(crate) fn infos<'a, const N: usize>(
        &mut self,
        family: &Family<N>,
        series: impl IntoIterator<Item = Labels<'a, N>>,
    ) -> fmt::Result {
        let mut to = self.0.encode_descriptor(family.name, family.help, None, MetricType::Info)?;
        series.into_iter().try_for_each(|values| to.encode_info(&Named { family, values: &values }))
    }

    fn family<'a, const N: usize, V>(
        &mut self,
        family: &Family<N>,
        kind: MetricType,
        series: impl IntoIterator<Item = (Labels<'a, N>, V)>,
        write: impl Fn(MetricEncoder<'_>, &V) -> fmt::Result,
    ) -> fmt::Result {
        let mut sorted = BTreeMap::new();
        for (labels, value) in series {
            sorted.entry(labels).or_insert(value);
        }
        if sorted.is_empty() {
            return Ok(());
        }
        let mut to = self.0.encode_descriptor(family.name, family.help, None, kind)?;
        for (values, value) in &sorted {
            match N {
                0 => write(to.encode_family::<[(&str, &str); 0]>(&[])?, value)?,
                _ => write(to.encode_family(&Named { family, values })?, value)?,
            }
        }
        Ok(())
    }
}

/// The labels of one series.
struct Named<'a, const N: usize> {
    family: &'a Family<N>,
    values: &'a Labels<'a, N>,
}

impl<const N: usize> EncodeLabelSet for Named<'_, N> {
    fn encode(&self, to: &mut LabelSetEncoder<'_>) -> fmt::Result {
        let all = self.family.labels.iter().zip(self.values);
        all.filter(|(_, value)| !value.is_empty())
            .try_for_each(|(name, value)| (*name, value.as_ref()).encode(to.encode_label()))
    }
}

/// 1 or 0.
pub(crate) fn yes(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// As all values of Prometheus are. Above 2^53 the last digits are lost, there and here.
pub(crate) const fn number(count: u64) -> f64 {
    count as f64
}

/// Of a rate in kbit/s, bytes in a second.
pub(crate) fn kbit(rate: u32) -> f64 {
    f64::from(rate) * 125.0
}

/// Of a rate in Mbit/s, bytes in a second.
pub(crate) fn mbit(rate: u32) -> f64 {
    f64::from(rate) * 125_000.0
}
