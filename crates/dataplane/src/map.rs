//! One map of the programs, with typed keys and values.

use crate::error::{Error, Result};
use bytemuck::{Pod, bytes_of};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, Object};
use std::ffi::OsStr;

pub(crate) struct Map {
    name: &'static str,
    handle: MapHandle,
}

impl Map {
    pub(crate) fn of(object: &Object, name: &'static str) -> Result<Self> {
        let map = object.maps().find(|map| map.name() == OsStr::new(name)).ok_or(Error::Missing(name))?;
        Ok(Self { name, handle: MapHandle::try_from(&map).map_err(Error::Load)? })
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn handle(&self) -> &MapHandle {
        &self.handle
    }

    /// The number by which the kernel lists it.
    pub(crate) fn id(&self) -> Result<u32> {
        self.handle.info().map(|map| map.info.id).map_err(|cause| self.failed(cause))
    }

    pub(crate) fn write<K: Pod, V: Pod>(&self, key: &K, value: &V) -> Result<()> {
        self.handle.update(bytes_of(key), bytes_of(value), MapFlags::ANY).map_err(|cause| self.failed(cause))
    }

    /// The row of a key that must be there.
    pub(crate) fn read<K: Pod, V: Pod>(&self, key: &K) -> Result<V> {
        let row = self.handle.lookup(bytes_of(key), MapFlags::ANY).map_err(|cause| self.failed(cause))?;
        self.typed(&row.ok_or(Error::Missing(self.name))?)
    }

    /// A row that is not there is no error.
    pub(crate) fn delete<K: Pod>(&self, key: &K) -> Result<()> {
        match self.handle.delete(bytes_of(key)) {
            Err(cause) if cause.kind() != libbpf_rs::ErrorKind::NotFound => Err(self.failed(cause)),
            _ => Ok(()),
        }
    }

    /// The row of each CPU.
    pub(crate) fn read_percpu<V: Pod>(&self, key: u32) -> Result<Vec<V>> {
        let cpus =
            self.handle.lookup_percpu(bytes_of(&key), MapFlags::ANY).map_err(|cause| self.failed(cause))?;
        cpus.ok_or(Error::Missing(self.name))?.iter().map(|cpu| self.typed(cpu)).collect()
    }

    pub(crate) fn write_percpu<V: Pod>(&self, key: u32, cpus: &[V]) -> Result<()> {
        let cpus: Vec<Vec<u8>> = cpus.iter().map(|cpu| bytes_of(cpu).to_vec()).collect();
        self.handle.update_percpu(bytes_of(&key), &cpus, MapFlags::ANY).map_err(|cause| self.failed(cause))
    }

    /// Sets the row of each CPU to zero.
    pub(crate) fn clear_percpu<V: Pod>(&self, key: u32) -> Result<()> {
        self.write_percpu(key, &vec![V::zeroed(); libbpf_rs::num_possible_cpus().map_err(Error::Load)?])
    }

    /// All rows. Those that come or go meanwhile may be missing, or come twice: the kernel begins again where the row it stands
    /// at goes, so the walk has an end of its own.
    pub(crate) fn rows<K: Pod, V: Pod>(&self) -> Result<Vec<(K, V)>> {
        let mut rows = Vec::new();
        for key in self.handle.keys().take(self.handle.max_entries() as usize) {
            let row = self.handle.lookup(&key, MapFlags::ANY).map_err(|cause| self.failed(cause))?;
            if let Some(row) = row {
                rows.push((self.typed(&key)?, self.typed(&row)?));
            }
        }
        Ok(rows)
    }

    fn typed<V: Pod>(&self, bytes: &[u8]) -> Result<V> {
        // The kernel may pad a row.
        let bytes = bytes.get(..size_of::<V>()).ok_or(Error::Missing(self.name))?;
        Ok(bytemuck::pod_read_unaligned(bytes))
    }

    fn failed(&self, cause: libbpf_rs::Error) -> Error {
        Error::Map { map: self.name, cause }
    }
}
