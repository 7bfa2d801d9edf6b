# The exception passes through torch's own frames, and wrappers around them.
import torch
import training


class Net(torch.nn.Module):
    def forward(self, x):
        try:
            {}["missing"]
        except KeyError as error:
            raise ValueError("bad input") from error


training.train(12)
Net()(1)
