import sys

import torch
import training


class Squares(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return torch.tensor(float(index**2))


if __name__ == "__main__":
    for context in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context=context)
        for round in range(8):
            training.train(1)
            total = sum(batch.sum().item() for batch in loader) if context == "fork" or round == 0 else total
        print(context, total, sys.argv[0])
