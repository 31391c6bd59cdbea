//! Flags that split an output into shards.

use std::num::NonZeroU64;

use gguf_store::{SplitLimit, SplitOptions};

use crate::listing;

/// Limits of a shard.
#[derive(clap::Args)]
// Without `skip`, clap's group would take the name of the parent struct.
#[group(skip)]
pub struct ShardArgs {
    /// Split the output into shards (OUT-00001-of-00003.gguf, ...) of at most N tensors.
    #[arg(long, value_name = "N")]
    split_max_tensors: Option<NonZeroU64>,
    /// Split the output into shards of at most SIZE bytes of tensor data: N(K|M|G), decimal.
    #[arg(long, value_name = "SIZE", conflicts_with = "split_max_tensors", value_parser = listing::parse_size)]
    split_max_size: Option<u64>,
    /// Put no tensors into the first shard, only metadata.
    #[arg(long)]
    no_tensor_first_split: bool,
}

impl ShardArgs {
    /// Returns the split options; `None` for one file.
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
