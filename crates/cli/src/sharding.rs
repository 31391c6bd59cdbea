//! Flags that divide an output among files.

use std::num::NonZeroU64;

use gguf_store::{SplitLimit, SplitOptions};

use crate::listing;

/// How much goes to one file.
#[derive(clap::Args)]
// Its group would bear the name of the one that it is part of.
#[group(skip)]
pub struct ShardArgs {
    /// Write shards, OUT-00001-of-00003.gguf and so on, of at most so many tensors each.
    #[arg(long, value_name = "N")]
    split_max_tensors: Option<NonZeroU64>,
    /// Write shards of at most so many bytes of tensors each: N(K|M|G), decimal.
    #[arg(long, value_name = "SIZE", conflicts_with = "split_max_tensors", value_parser = listing::parse_size)]
    split_max_size: Option<u64>,
    /// Keep tensors out of the first shard, so that it can be read alone for the keys.
    #[arg(long)]
    no_tensor_first_split: bool,
}

impl ShardArgs {
    /// What is asked for; `None` for one file.
    pub fn options(&self) -> Option<SplitOptions> {
        let limit = match (self.split_max_tensors, self.split_max_size) {
            (Some(tensors), _) => SplitLimit::Tensors(tensors),
            (None, Some(bytes)) => SplitLimit::Bytes(bytes),
            (None, None) if self.no_tensor_first_split => SplitLimit::Bytes(u64::MAX),
            (None, None) => return None,
        };
        Some(SplitOptions { limit, no_tensor_first_split: self.no_tensor_first_split })
    }
}
