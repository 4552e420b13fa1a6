//! What an option is: one entry of a table, from which the command line, the configuration file, requests, records, the state
//! file and their checks follow.
//!
//! [`options!`] makes two structs of a table. The first one holds what is *given*, by a command, a request or a file; it is
//! what clap and serde read. The second one holds what is *in force*: each option has a value, its default unless another one
//! was given. Records and state files are made of it, so one that was written before an option was there reads with its
//! default.

use crate::{Error, config::Table, value::Kind};
use toml::de::DeValue;

/// An option that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// Its long name on the command line, such as `--policy`.
    pub option: String,
    /// Its value as the command line writes it.
    pub value: String,
    /// Why it cannot have this value, if it cannot.
    pub refused: Option<String>,
}

impl Given {
    pub(crate) fn new<T>(field: &str, value: String, read: impl Fn(&str) -> Result<T, String>) -> Self {
        let refused = read(&value).err();
        Self { option: format!("--{}", key(field)), value, refused }
    }
}

/// The name of an option in a file, from that of its field.
pub fn key(field: &str) -> String {
    field.replace('_', "-")
}

/// The help of an option: its sentence, its range and its default.
pub fn help(sentence: &str, range: &str, default: &str, object: &str) -> String {
    let range = if range.is_empty() { String::new() } else { format!(", {range}") };
    format!("{}{range}; default in a new {object}: {default}", sentence.trim())
}

/// The value of an option in a table of a file.
pub fn in_table<T>(
    table: &Table<'_>,
    field: &str,
    kind: Kind,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Error> {
    table.get(&key(field), |value: &DeValue<'_>| read(&kind.text(value)?))
}

/// Makes the structs of a table of options.
///
/// ```text
/// options! {
///     /// What the options are about.
///     Given / InForce of "object", Copy;      without Copy where a value has none
///     /// The sentence of the help; range and default are added to it
///     field ("json_key"): Type = default;
///     another ("json_key"): Type = default, by function_that_reads_text;
///     given { has_no_constant_default ("json_key"): Type = "the default in words"; }
///     group { field: Given / InForce; }
/// }
/// ```
macro_rules! options {
    (
        $(#[doc = $about:literal])+
        $Options:ident / $Settings:ident of $object:literal $(, $Copy:ident)?;
        $( $(#[doc = $doc:literal])+ $field:ident ($json:literal): $ty:ty = $default:expr $(, by $read:path)?; )*
        $( given { $( $(#[doc = $gdoc:literal])+ $given:ident ($gjson:literal): $gty:ty = $words:literal; )* } )?
        $( group { $(#[doc = $ndoc:literal])+ $group:ident: $GroupOptions:ident / $GroupSettings:ident; } )?
    ) => {
        $(#[doc = $about])+
        ///
        /// Those that are given.
        #[derive(Debug, Clone, $($Copy,)? Default, PartialEq, Eq, serde::Serialize, serde::Deserialize, clap::Args)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(default, deny_unknown_fields)]
        #[group(skip)]
        pub struct $Options {
            $(
                $(#[doc = $doc])+
                #[serde(rename = $json, skip_serializing_if = "Option::is_none")]
                #[arg(
                    long,
                    value_name = <$ty as $crate::value::Value>::NAME,
                    value_parser = $crate::options::reader!($ty $(, $read)?),
                    help = $crate::options::help(
                        concat!($($doc),+),
                        &<$ty as $crate::value::Value>::range(),
                        &$crate::value::Value::text(&{ let default: $ty = $default; default }),
                        $object,
                    ),
                )]
                pub $field: Option<$ty>,
            )*
            $($(
                $(#[doc = $gdoc])+
                #[serde(rename = $gjson, skip_serializing_if = "Option::is_none")]
                #[arg(
                    long,
                    value_name = <$gty as $crate::value::Value>::NAME,
                    value_parser = $crate::options::reader!($gty),
                    help = $crate::options::help(
                        concat!($($gdoc),+),
                        &<$gty as $crate::value::Value>::range(),
                        $words,
                        $object,
                    ),
                )]
                pub $given: Option<$gty>,
            )*)?
            $(
                $(#[doc = $ndoc])+
                #[command(flatten)]
                pub $group: $GroupOptions,
            )?
        }

        $(#[doc = $about])+
        ///
        /// Those in force.
        #[derive(Debug, Clone, $($Copy,)? PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(default)]
        pub struct $Settings {
            $(
                $(#[doc = $doc])+
                #[serde(rename = $json)]
                pub $field: $ty,
            )*
            $(
                $(#[doc = $ndoc])+
                #[serde(flatten)]
                pub $group: $GroupSettings,
            )?
        }

        impl Default for $Settings {
            fn default() -> Self {
                Self { $($field: $default,)* $($group: $GroupSettings::default(),)? }
            }
        }

        impl $Settings {
            /// These, with those that are given instead.
            #[must_use]
            pub fn with(&self, given: &$Options) -> Self {
                Self {
                    $($field: given.$field.as_ref().unwrap_or(&self.$field).to_owned(),)*
                    $($group: self.$group.with(&given.$group),)?
                }
            }

            /// What has to be given to have these where `others` are in force.
            #[must_use]
            pub fn besides(&self, others: &Self) -> $Options {
                $Options {
                    $($field: (self.$field != others.$field).then(|| self.$field.to_owned()),)*
                    $($($given: None,)*)?
                    $($group: self.$group.besides(&others.$group),)?
                }
            }
        }

        impl $Options {
            /// The ids of these options in clap.
            pub fn ids() -> Vec<&'static str> {
                let own = [$(stringify!($field),)* $($(stringify!($given),)*)?].into_iter();
                own$(.chain($GroupOptions::ids()))?.collect()
            }

            /// The keys of these options in a file.
            pub fn keys() -> Vec<String> {
                Self::ids().into_iter().map($crate::options::key).collect()
            }

            /// Each one that is given, in the words of the command line.
            pub fn given(&self) -> Vec<$crate::options::Given> {
                let mut all = Vec::new();
                $(if let Some(value) = &self.$field {
                    let text = $crate::value::Value::text(value);
                    let read = $crate::options::reader!($ty $(, $read)?);
                    all.push($crate::options::Given::new(stringify!($field), text, read));
                })*
                $($(if let Some(value) = &self.$given {
                    let text = $crate::value::Value::text(value);
                    let read = $crate::options::reader!($gty);
                    all.push($crate::options::Given::new(stringify!($given), text, read));
                })*)?
                $(all.extend(self.$group.given());)?
                all
            }

            /// Those that a table of a file gives.
            pub(crate) fn read(table: &$crate::config::Table<'_>) -> Result<Self, $crate::Error> {
                use $crate::{options::{in_table, reader}, value::Value};
                Ok(Self {
                    $($field: in_table(table, stringify!($field), <$ty>::KIND, reader!($ty $(, $read)?))?,)*
                    $($($given: in_table(table, stringify!($given), <$gty>::KIND, reader!($gty))?,)*)?
                    $($group: $GroupOptions::read(table)?,)?
                })
            }
        }
    };
}

/// What reads the text of a value.
macro_rules! reader {
    ($ty:ty) => {
        <$ty as $crate::value::Value>::read
    };
    ($ty:ty, $read:path) => {
        $read
    };
}

pub(crate) use {options, reader};
