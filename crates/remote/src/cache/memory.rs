//! Memory cache of blocks with LRU eviction.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Maximum number of blocks: 64 MiB.
const MAX_BLOCKS: usize = 1024;

/// Source number and block number.
pub(super) type Key = (u64, u64);

/// Memory cache of blocks with LRU eviction.
#[derive(Debug, Default)]
pub(super) struct Memory {
    blocks: HashMap<Key, (u64, Arc<[u8]>)>,
    order: BTreeMap<u64, Key>,
    time: u64,
    pub bytes: u64,
}

impl Memory {
    pub fn get(&mut self, key: Key) -> Option<Arc<[u8]>> {
        let (time, block) = self.blocks.get_mut(&key)?;
        self.order.remove(time);
        self.time += 1;
        *time = self.time;
        self.order.insert(self.time, key);
        Some(block.clone())
    }

    pub fn put(&mut self, key: Key, block: Arc<[u8]>) {
        self.time += 1;
        self.bytes += block.len() as u64;
        if let Some((time, old)) = self.blocks.insert(key, (self.time, block)) {
            self.order.remove(&time);
            self.bytes -= old.len() as u64;
        }
        self.order.insert(self.time, key);
        while self.blocks.len() > MAX_BLOCKS {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            if let Some((_, block)) = self.blocks.remove(&oldest) {
                self.bytes -= block.len() as u64;
            }
        }
    }
}
