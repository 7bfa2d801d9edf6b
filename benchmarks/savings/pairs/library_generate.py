"""transformers waits at every token to see whether all sequences have ended; the fix patches the check at run time.

Nothing ends early here, so the length alone decides.
"""

import torch
from parts import Step, profiled
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.generation import utils

SIZES = {"short": (8, 256, 3), "long": (32, 512, 3)}
FIX = {
    "question": "library patched",
    "kind": "wait",
    "findings": [("SYN102", "model.generate(", "StopCheck.__call__")],
}


def model_and_prompt(batch: int, length: int) -> tuple[GPT2LMHeadModel, torch.Tensor]:
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=1, n_embd=1024, n_head=16, vocab_size=5000, eos_token_id=None, bos_token_id=0, pad_token_id=0
    )
    prompt = torch.arange(batch * length).reshape(batch, length) % 5000
    return GPT2LMHeadModel(config).to("cuda").eval(), prompt.to("cuda")


def before(batch: int, length: int, tokens: int) -> Step:
    model, prompt = model_and_prompt(batch, length)

    def step():
        return model.generate(prompt, max_new_tokens=tokens, do_sample=False)

    return step


def after(batch: int, length: int, tokens: int) -> Step:
    model, prompt = model_and_prompt(batch, length)
    reads = utils.StopCheck.__call__

    def counts(check: utils.StopCheck, unfinished: torch.Tensor, token: torch.Tensor, reached: int) -> bool:
        return reached >= length + tokens

    def step():
        utils.StopCheck.__call__ = counts
        try:
            return model.generate(prompt, max_new_tokens=tokens, do_sample=False)
        finally:
            utils.StopCheck.__call__ = reads

    return step


if __name__ == "__main__":
    profiled(before, SIZES)
