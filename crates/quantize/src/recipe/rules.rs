//! The rules of the presets: one short function per tensor category.
//!
//! They follow `llama_tensor_get_type_impl` of llama.cpp, whose choices were tuned by measuring
//! perplexity. The order of the tensors is part of the rules, because several rules count tensors.

use gguf::TensorType as T;

use super::category::Category;
use super::{Model, Preset, TensorDesc};

/// Position of a tensor among the tensors of its category.
#[derive(Clone, Copy)]
struct Position {
    index: u64,
    count: u64,
}

impl Position {
    /// Whether the position is within the first 1/`part` of the layers.
    fn in_first(self, part: u64) -> bool {
        self.index < self.count / part
    }

    fn in_last_eighth(self) -> bool {
        self.index >= self.count.saturating_mul(7) / 8
    }

    /// Whether the `_M` presets give the layer more bits: the first and last eighth, and every
    /// third layer between.
    fn is_favoured(self) -> bool {
        self.in_first(8) || self.in_last_eighth() || (self.index - self.count / 8) % 3 == 2
    }
}

/// Number of tensors of a category so far.
#[derive(Default)]
struct Counter(u64);

impl Counter {
    fn next(&mut self) -> u64 {
        let index = self.0;
        self.0 += 1;
        index
    }
}

/// Special types of the presets below 2.8 bits per weight.
struct LowBit {
    /// Type of value projections and of the first eighth of `ffn_down`.
    raised: T,
    attention_output: Option<T>,
}

fn low_bit(preset: Preset) -> Option<LowBit> {
    let (raised, attention_output) = match preset {
        Preset::IQ1_S | Preset::IQ1_M => (T::Q2_K, Some(T::IQ2_XXS)),
        Preset::IQ2_XXS | Preset::IQ2_XS => (T::Q2_K, None),
        Preset::IQ2_S | Preset::IQ2_M => (T::IQ3_S, Some(T::IQ3_S)),
        _ => return None,
    };
    Some(LowBit { raised, attention_output })
}

/// State of a preset applied to one model.
pub(super) struct Rules<'a> {
    preset: Preset,
    model: &'a Model,
    has_imatrix: bool,
    /// Whether the model has tied embeddings.
    tied_embeddings: bool,
    layer_count: u64,
    value_count: u64,
    values: Counter,
    ffn_down: Counter,
    ffn_gate: Counter,
    ffn_up: Counter,
}

impl<'a> Rules<'a> {
    pub(super) fn new(
        preset: Preset,
        model: &'a Model,
        has_imatrix: bool,
        tensors: &[TensorDesc<'_>],
    ) -> Self {
        let categories = || tensors.iter().map(|t| Category::of(t.name));
        let named_layers = || tensors.iter().filter_map(|t| t.layer()).max().map_or(0, |n| n + 1);
        Self {
            preset,
            model,
            has_imatrix,
            tied_embeddings: !categories().any(|c| c == Category::Output),
            layer_count: if model.layer_count > 0 { model.layer_count } else { named_layers() },
            value_count: categories().filter(|c| c.holds_values()).count() as u64,
            values: Counter::default(),
            ffn_down: Counter::default(),
            ffn_gate: Counter::default(),
            ffn_up: Counter::default(),
        }
    }

    /// Whether a tensor of this category is the output projection, under any name.
    pub(super) fn is_output(&self, category: Category) -> bool {
        category == Category::Output
            || (self.tied_embeddings && category == Category::TokenEmbedding)
    }

    /// Returns the type that the preset chooses for a tensor, before its shape is considered.
    pub(super) fn choose(&mut self, tensor: &TensorDesc<'_>, category: Category) -> T {
        if self.is_held_at_q8_0(tensor.name) {
            return T::Q8_0;
        }
        if self.is_output(category) {
            return self.output(tensor);
        }
        if self.preset == Preset::MXFP4_MOE {
            return self.mxfp4(tensor, category);
        }
        if category == Category::TokenEmbedding {
            return self.preset.embedding_type();
        }
        if let Some(low) = low_bit(self.preset) {
            return self.low_bit(low, category);
        }
        match category {
            Category::AttentionV | Category::AttentionQkv | Category::AttentionKvB => {
                let index = self.values.next();
                self.values(Position { index, count: self.value_count })
            }
            Category::AttentionK => self.attention_k(),
            Category::AttentionQ => self.attention_q(),
            Category::AttentionOutput => self.attention_output(),
            Category::FfnDown => {
                let index = self.ffn_down.next();
                self.ffn_down(self.layer(index, tensor))
            }
            Category::FfnGate => {
                let index = self.ffn_gate.next();
                self.ffn_input(self.layer(index, tensor))
            }
            Category::FfnUp => {
                let index = self.ffn_up.next();
                self.ffn_input(self.layer(index, tensor))
            }
            Category::Output | Category::TokenEmbedding | Category::Other => {
                self.preset.default_type()
            }
        }
    }

    /// Returns the layer of an FFN tensor: by counting, or by name if each expert may be a separate
    /// tensor. (For an expert model with a tensor whose name does not start with its layer,
    /// llama.cpp fails; this function continues to count.)
    fn layer(&self, index: u64, tensor: &TensorDesc<'_>) -> Position {
        let named = tensor.layer().filter(|_| self.model.expert_count > 1);
        Position { index: named.unwrap_or(index), count: self.layer_count }
    }

    fn has_8_experts(&self) -> bool {
        self.model.expert_count == 8
    }

    /// Whether at least four query heads share one KV head, so that the value projection is a
    /// quarter of the size and can have more bits.
    fn is_grouped(&self) -> bool {
        self.model.grouped_queries() >= 4
    }

    fn is_held_at_q8_0(&self, name: &str) -> bool {
        self.model.architecture == "glm5-next"
            && ["attn_q_a", "attn_q_b", "nextn.eh_proj"].iter().any(|part| name.contains(part))
    }

    fn output(&self, tensor: &TensorDesc<'_>) -> T {
        if self.model.is_falcon() || !fits(tensor.columns(), self.preset.default_type()) {
            T::Q8_0
        } else {
            self.preset.output_type()
        }
    }

    fn mxfp4(&self, tensor: &TensorDesc<'_>, category: Category) -> T {
        let is_stacked = tensor.shape.get(2).is_some_and(|&n| n > 1);
        // This architecture also stacks matrices other than experts.
        let may_be_experts = self.model.architecture != "bailingmoe3"
            || matches!(category, Category::FfnUp | Category::FfnGate | Category::FfnDown);
        if is_stacked && may_be_experts { T::MXFP4 } else { T::Q8_0 }
    }

    fn low_bit(&mut self, low: LowBit, category: Category) -> T {
        let default = self.preset.default_type();
        match category {
            c if c.holds_values() => {
                let is_cheap = self.is_grouped() || self.model.expert_count >= 4;
                if is_cheap { T::Q4_K } else { low.raised }
            }
            Category::AttentionK if self.has_8_experts() => T::Q4_K,
            Category::AttentionOutput if self.has_8_experts() => T::Q5_K,
            Category::AttentionOutput => low.attention_output.unwrap_or(default),
            Category::FfnDown => {
                // Counted even if each expert is a separate tensor.
                let at = Position { index: self.ffn_down.next(), count: self.layer_count };
                if at.in_first(8) { low.raised } else { default }
            }
            _ => default,
        }
    }

    fn values(&self, at: Position) -> T {
        if self.has_8_experts() {
            return T::Q8_0;
        }
        let ty = match self.preset {
            Preset::Q2_K if self.is_grouped() => T::Q4_K,
            Preset::Q2_K => T::Q3_K,
            Preset::Q2_K_S | Preset::IQ3_XXS | Preset::IQ3_XS | Preset::IQ3_S
                if self.is_grouped() =>
            {
                T::Q4_K
            }
            Preset::IQ3_XXS if !self.has_imatrix => T::IQ3_S,
            Preset::IQ3_M => T::Q4_K,
            Preset::Q3_K_M if at.index < 2 => T::Q5_K,
            Preset::Q3_K_M => T::Q4_K,
            Preset::Q3_K_L => T::Q5_K,
            Preset::IQ4_NL | Preset::IQ4_XS if self.is_grouped() => T::Q5_K,
            Preset::Q4_K_S if at.index < 4 => T::Q5_K,
            Preset::Q4_K_M | Preset::Q5_K_M if at.is_favoured() => T::Q6_K,
            preset => preset.default_type(),
        };
        match ty {
            T::Q3_K | T::Q4_K if self.model.is_70b() => T::Q5_K,
            ty => ty,
        }
    }

    fn attention_k(&self) -> T {
        if self.has_8_experts() { T::Q8_0 } else { self.attention_q() }
    }

    fn attention_q(&self) -> T {
        match self.preset {
            Preset::IQ3_XS => T::IQ3_XXS,
            Preset::IQ3_XXS => T::IQ2_S,
            preset => preset.default_type(),
        }
    }

    fn attention_output(&self) -> T {
        match self.preset {
            Preset::Q3_K_L if self.model.is_falcon() => T::Q4_K,
            preset if self.model.is_falcon() => preset.default_type(),
            Preset::Q2_K
            | Preset::IQ3_XXS
            | Preset::IQ3_XS
            | Preset::IQ3_S
            | Preset::IQ3_M
            | Preset::Q3_K_S
            | Preset::Q3_K_M
            | Preset::IQ4_XS
            | Preset::IQ4_NL
            | Preset::Q4_K_S
            | Preset::Q4_K_M
                if self.has_8_experts() =>
            {
                T::Q5_K
            }
            preset if self.has_8_experts() => preset.default_type(),
            Preset::Q2_K => T::Q3_K,
            Preset::IQ3_XXS => T::IQ3_S,
            Preset::IQ3_M | Preset::Q3_K_M => T::Q4_K,
            Preset::Q3_K_L => T::Q5_K,
            preset => preset.default_type(),
        }
    }

    fn ffn_down(&self, at: Position) -> T {
        let is_falcon = self.model.is_falcon();
        match self.preset {
            Preset::Q2_K => T::Q3_K,
            Preset::Q2_K_S if at.in_first(8) => T::Q4_K,
            Preset::IQ3_XXS if !self.has_imatrix && at.in_first(8) => T::Q4_K,
            Preset::IQ3_XXS if !self.has_imatrix => T::Q3_K,
            Preset::IQ3_M if at.in_first(8) || (self.has_8_experts() && at.is_favoured()) => {
                T::Q4_K
            }
            Preset::Q3_K_M if at.in_first(16) => T::Q5_K,
            Preset::Q3_K_M if !is_falcon || at.is_favoured() => T::Q4_K,
            Preset::Q3_K_L if is_falcon => T::Q4_K,
            Preset::Q3_K_L => T::Q5_K,
            Preset::IQ4_NL | Preset::IQ4_XS if !self.has_imatrix && at.in_first(8) => T::Q5_K,
            Preset::Q4_K_S if !is_falcon && at.in_first(8) => T::Q5_K,
            Preset::Q4_K_M if is_falcon && at.in_first(16) => T::Q6_K,
            Preset::Q4_K_M if is_falcon && at.is_favoured() => T::Q5_K,
            Preset::Q4_K_M if !is_falcon && at.is_favoured() => T::Q6_K,
            Preset::Q5_K_M if at.is_favoured() => T::Q6_K,
            // With importance weights, a single scale without a minimum can be poor in the first
            // layers; without them, the additional minimum makes the result worse.
            Preset::Q4_0 if self.has_imatrix && at.in_first(8) => T::Q4_1,
            Preset::Q5_0 if self.has_imatrix && at.in_first(8) => T::Q5_1,
            preset => preset.default_type(),
        }
    }

    fn ffn_input(&self, at: Position) -> T {
        match self.preset {
            Preset::IQ3_XS if !at.in_first(8) && !at.in_last_eighth() => T::IQ3_XXS,
            preset => preset.default_type(),
        }
    }
}

/// Whether a tensor of this type is unusable unless importance weights guide its encoder.
pub(super) fn needs_imatrix(category: Category, ty: T, preset: Option<Preset>) -> bool {
    match ty {
        _ if matches!(category, Category::Output | Category::TokenEmbedding) => false,
        T::IQ1_S | T::IQ1_M | T::IQ2_XXS | T::IQ2_XS | T::IQ2_S | T::IQ3_XXS => true,
        // Q2_K alone is usable without; the preset that consists mostly of it is not.
        T::Q2_K => preset == Some(Preset::Q2_K_S),
        _ => false,
    }
}

/// Whether the block size of a type divides the row size; false for types without blocks.
pub(super) fn fits(columns: u64, ty: T) -> bool {
    ty.block().is_some_and(|(len, _)| columns.is_multiple_of(len))
}

/// Returns the 32-weight fallback type for rows that larger blocks do not divide; `None` where
/// llama.cpp fails.
pub(super) fn fallback_type(ty: T) -> Option<T> {
    match ty {
        T::IQ1_S | T::IQ1_M | T::IQ2_XXS | T::IQ2_XS | T::IQ2_S => Some(T::IQ4_NL),
        T::IQ3_XXS | T::IQ3_S | T::IQ4_XS => Some(T::IQ4_NL),
        T::Q2_0 | T::TQ1_0 | T::TQ2_0 | T::Q2_K | T::Q3_K => Some(T::Q4_0),
        T::Q4_K => Some(T::Q5_0),
        T::Q5_K => Some(T::Q5_1),
        T::Q6_K => Some(T::Q8_0),
        ty => ty.block().filter(|(len, _)| *len <= 32).map(|_| ty),
    }
}

#[cfg(test)]
mod tests {
    use gguf::{Status, TensorType};

    use super::*;

    fn written() -> impl Iterator<Item = T> {
        TensorType::all().filter(|ty| ty.traits().is_some_and(|row| row.status == Status::Current))
    }

    #[test]
    fn large_blocks_have_a_fallback_type() {
        let without: Vec<_> = written().filter(|ty| fallback_type(*ty).is_none()).collect();
        // llama.cpp has no fallback for these.
        assert_eq!(without, [T::NVFP4, T::Q1_0]);
    }

    #[test]
    fn encoders_that_require_importance_are_known_to_need_it() {
        let required = |ty: &T| gguf_quant::codec(*ty).is_some_and(|c| c.requires_importance());
        let mut types = written().filter(required).peekable();
        assert!(types.peek().is_some());
        assert!(types.all(|ty| needs_imatrix(Category::AttentionQ, ty, None)));
    }
}
