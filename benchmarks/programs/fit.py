"""lightning: a fit with logging and gradient clipping."""

import lightning
import oracle
import torch
from torch import nn


class Module(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10))

    def training_step(self, batch, index):
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


lightning.seed_everything(0)
data = torch.utils.data.TensorDataset(torch.randn(6400, 256), torch.randint(10, (6400,)))
oracle.listen()
trainer = lightning.Trainer(
    max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False, gradient_clip_val=1.0
)
trainer.fit(Module(), torch.utils.data.DataLoader(data, batch_size=128))
