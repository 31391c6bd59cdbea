//! Model properties on which the presets depend.

/// Model properties on which the presets depend; zero where a model has no such property.
///
/// Unknown architectures follow the general rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// `general.architecture`.
    pub architecture: String,
    /// Number of layers that the rules for the first and last layers refer to. If zero, the highest
    /// layer number in the tensor names determines it.
    pub layer_count: u64,
    /// Number of multi-token prediction (MTP) layers among them.
    pub nextn_layer_count: u64,
    /// Number of experts per layer.
    pub expert_count: u64,
    /// Number of attention heads in the first layer.
    pub head_count: u64,
    /// Number of KV heads in the first layer.
    pub head_count_kv: u64,
}

impl Model {
    /// Reads the properties from metadata: `key` returns the integer value of a full key such as
    /// `llama.block_count`, for an array its first element.
    pub fn from_keys(architecture: &str, key: impl Fn(&str) -> Option<u64>) -> Self {
        let find = |suffix: &str| key(&format!("{architecture}.{suffix}"));
        let get = |suffix: &str| find(suffix).unwrap_or(0);
        let block_count = get("block_count");
        let head_count = get("attention.head_count");
        let mut model = Self {
            architecture: architecture.to_owned(),
            layer_count: block_count,
            nextn_layer_count: get("nextn_predict_layers"),
            expert_count: get("expert_count"),
            head_count,
            head_count_kv: find("attention.head_count_kv").unwrap_or(head_count),
        };
        match architecture {
            // llama.cpp's runtime adds a layer for the router and counts it.
            "graniteswitch" => {
                model.layer_count = block_count.saturating_sub(model.nextn_layer_count) + 1;
                model.nextn_layer_count = 1;
            }
            // Looped layers count once per loop.
            "nanbeige" if get("num_loops") > 1 => {
                let once = block_count.saturating_sub(model.nextn_layer_count);
                model.layer_count = once.saturating_mul(get("num_loops"));
            }
            _ => {}
        }
        model
    }

    /// Number of query heads per KV head; 0 without attention.
    pub(crate) fn grouped_queries(&self) -> u64 {
        self.head_count.checked_div(self.head_count_kv).unwrap_or(0)
    }

    /// Whether llama.cpp's runtime classifies the model as 70B, whose value projections are so
    /// small that more bits for them cost little.
    pub(crate) fn is_70b(&self) -> bool {
        let layers = self.layer_count.saturating_sub(self.nextn_layer_count);
        match self.architecture.as_str() {
            "llama" | "llama-embed" => {
                layers == 80 && self.expert_count != 8 && self.head_count != self.head_count_kv
            }
            "qwen2" | "deci" | "olmo" => layers == 80,
            "jais2" => layers == 68,
            _ => false,
        }
    }

    pub(super) fn is_falcon(&self) -> bool {
        self.architecture == "falcon"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(architecture: &str, keys: &[(&str, u64)]) -> Model {
        Model::from_keys(architecture, |key| {
            keys.iter().find(|(k, _)| key.strip_prefix(architecture) == Some(k)).map(|(_, v)| *v)
        })
    }

    #[test]
    fn kv_heads_default_to_heads() {
        let model = read("llama", &[(".block_count", 80), (".attention.head_count", 64)]);
        assert_eq!((model.grouped_queries(), model.is_70b()), (1, false));
        let model = Model { head_count_kv: 8, ..model };
        assert_eq!((model.grouped_queries(), model.is_70b()), (8, true));
        assert_eq!(read("mamba", &[]).grouped_queries(), 0);
    }

    #[test]
    fn some_architectures_count_layers_differently() {
        let keys = [(".block_count", 40), (".num_loops", 2)];
        assert_eq!(read("graniteswitch", &keys).layer_count, 41);
        assert_eq!(read("nanbeige", &keys).layer_count, 80);
        assert_eq!(read("llama", &keys).layer_count, 40);
    }
}
