"""Forty real shapes of each small file of a Hugging Face checkpoint: who writes it so, and what must be true of it.

`shape` says what a shape is; `tiny_checkpoints` makes the plain checkpoints that a shape changes; `program_reading` is what the
program makes of a directory, `other_readers` what transformers, tokenizers and safetensors make of it. The tables are the modules
`config_shapes`, `generation_config_shapes`, `tokenizer_config_shapes`, `special_tokens_map_shapes`, `added_tokens_shapes`,
`chat_template_shapes`, `tokenizer_shapes` and `weights_shapes`; `refused_shapes` has what is refused, and by which words.
"""
