//! What every protocol counts in one way: a number, a name, a sentence, and how often.

/// Makes an enum `Counter`, and a struct of that name with a value for each. Numbers run from 0 and are never reused;
/// names never change.
macro_rules! counters {
    ($values:ident; $($variant:ident = $number:literal, $name:literal, $text:literal;)+) => {
        /// One counter. Numbers are never reused, names never changed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum Counter {
            $(#[doc = $text] $variant = $number,)+
        }

        impl Counter {
            /// Every counter in the order of numbers.
            pub const ALL: &'static [Counter] = &[$(Counter::$variant),+];

            /// Its name: lower case with underscores.
            pub const fn name(self) -> &'static str {
                match self { $(Counter::$variant => $name),+ }
            }

            /// One sentence for people.
            pub const fn description(self) -> &'static str {
                match self { $(Counter::$variant => $text),+ }
            }

            /// Its number.
            pub const fn number(self) -> u32 {
                self as u32
            }
        }

        /// All counters with their values.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $values(Vec<u64>);

        impl Default for $values {
            fn default() -> Self {
                $values(vec![0; Counter::ALL.len()])
            }
        }

        impl $values {
            /// How often.
            pub fn get(&self, counter: Counter) -> u64 {
                self.0[counter.number() as usize]
            }

            /// Every counter with its value, in the order of numbers.
            pub fn iter(&self) -> impl Iterator<Item = (Counter, u64)> + '_ {
                Counter::ALL.iter().map(|counter| (*counter, self.get(*counter)))
            }

            pub(super) fn add(&mut self, counter: Counter, count: u64) {
                let value = &mut self.0[counter.number() as usize];
                *value = value.saturating_add(count);
            }

            pub(super) fn one(&mut self, counter: Counter) {
                self.add(counter, 1);
            }
        }

        #[cfg(test)]
        mod numbering {
            use super::Counter;
            use std::collections::BTreeSet;

            #[test]
            fn numbers_run_from_zero_and_names_differ() {
                assert!(Counter::ALL.iter().zip(0..).all(|(counter, number)| counter.number() == number));
                let names: BTreeSet<&str> = Counter::ALL.iter().map(|counter| counter.name()).collect();
                assert_eq!(names.len(), Counter::ALL.len());
            }
        }
    };
}

pub(crate) use counters;
