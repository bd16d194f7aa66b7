"""What do the files of a model say: its configuration, and where its tensors lie?

Nothing here makes a model or imports torch: `config` reads files through this room, and
`checkpoints` fills a model from what it finds.
"""
