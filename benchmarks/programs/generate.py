"""transformers: a generate loop with sampling and beam search."""

import oracle
import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(eos_token_id=7, bos_token_id=0, pad_token_id=0)
model = GPT2LMHeadModel(config).to("cuda").eval()
prompt = torch.randint(50000, (4, 32), device="cuda")
oracle.listen()
for _ in range(3):
    model.generate(prompt, max_new_tokens=48, do_sample=True, top_p=0.9, repetition_penalty=1.1)
