"""torchvision: a training step of Faster R-CNN."""

import oracle
import torch
import torchvision

torch.manual_seed(0)
model = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=5)
model.to("cuda").train()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
images = [torch.rand(3, 480, 640, device="cuda") for _ in range(2)]
corner = torch.rand(8, 2, device="cuda") * 300
targets = [{"boxes": torch.cat([corner, corner + 100], 1), "labels": torch.randint(1, 5, (8,), device="cuda")}] * 2
oracle.listen()
for _ in range(30):
    optimizer.zero_grad()
    losses = model(images, targets)
    sum(losses.values()).backward()
    optimizer.step()
