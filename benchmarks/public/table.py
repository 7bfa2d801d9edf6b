"""The public programs: which repository, at which commit, with which command, and what data they read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Program:
    name: str
    kind: str
    """What it does, as far as the phases of its run are concerned."""
    repository: str
    """``owner/name`` on GitHub. Its clone is the folder ``name``, or that in ``RENAMED``."""
    command: str
    """After ``python``; ``{data}`` is the folder that ``data.py`` filled, ``{bin}`` that of Python's own scripts."""
    folder: str = "."
    """Of the clone: where it is started."""
    data: Mapping[str, str] = field(default_factory=dict)
    """Paths in the clone → folders or files of the data, linked there."""
    launcher: str = ""
    """What starts it (``-m torch.distributed.run ...``), before the command."""
    inside: bool = False
    """The launcher starts syncscope, which runs the program; else syncscope runs the launcher."""
    before: str = ""
    """A command that has to run once before, unmeasured."""
    gpus: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    seconds: int = 90
    """It is ended after so long."""

    @property
    def clone(self) -> str:
        return RENAMED.get(self.repository) or self.repository.split("/")[1]


RENAMED = {"Project-MONAI/tutorials": "monai-tutorials"}
"""The folders of the clones of those that share their name with another."""

COMMITS = {
    "649453932/Bert-Chinese-Text-Classification-Pytorch": "050a7b0dc75d8a2d7fd526002c4642d5329a0c27",
    "649453932/Chinese-Text-Classification-Pytorch": "6cb26819af7b646275aff8a4693676f2849e67f6",
    "affjljoo3581/GPT2": "7b159669f6225231ee75f5ea110c1be69f4ce8ef",
    "AI4Finance-Foundation/ElegantRL": "7c64395ff4c2b53892fe6f9eaa3b58947136ffc1",
    "Andras7/word2vec-pytorch": "36b93a503e8b3b5448abbc0e18f2a6bd3e017fc9",
    "ashleve/lightning-hydra-template": "bddbc24b82ab6ccfa6243e815a49dc5bfe8d4144",
    "auspicious3000/autovc": "c1827a60e83e6d26030b8953843b2f7cf2bd36db",
    "chanwutk/vision_references": "aea0f07fa3a7afb81417d4ee84ac0ab6d4b156d3",
    "chennnM/GCNII": "ca91f5686c4cd09cc1c6f98431a5d5b7e36acc92",
    "cloneofsimo/minRF": "4fc10e0cc8ba976152c7936a1af9717209f03e18",
    "clovaai/stargan-v2": "875b70a150609e8a678ed8482562e7074cdce7e5",
    "clovaai/voxceleb_trainer": "f51bab870672a9b0b50fa158b4e30f329e7866d7",
    "codertimo/BERT-pytorch": "d10dc4f9d5a6f2ca74380f62039526eb7277c671",
    "cornellius-gp/gpytorch": "7c4ec80f0f05cf530348a8a8972d67a11dd26ed2",
    "CRIPAC-DIG/SR-GNN": "e21cfa431f74c25ae6e4ae9261deefe11d1cb488",
    "Diego999/pyGAT": "3664f2dc90cbf971564c0bf186dc794f12446d0c",
    "DLR-RM/stable-baselines3": "e05d2dbe6eda0acd0ef2e316e3e4065677add3eb",
    "dongminlee94/deep_rl": "d5bcabc541a5f16e166be33876d23352e149f97e",
    "EricHuang49/PyTorch-TransferLearning-Tutorial": "15e00b1c790f52cc906141d38c776cf6ec089021",
    "eriklindernoren/PyTorch-GAN": "36d3c77e5ff20ebe0aeefd322326a134a279b93e",
    "explainingai-code/DDPM-Pytorch": "b524321c101af13f28a5d1f4fbcca1a847c19924",
    "facebookresearch/adaptive-span": "27b815fee821acce2c2d4104cc0720cb1dc74c37",
    "facebookresearch/barlowtwins": "8e8d284ca0bc02f88b92328e53f9b901e86b4a3c",
    "facebookresearch/detr": "29901c51d7fe8712168b8d0d64351170bc0f83e0",
    "facebookresearch/dino": "7c446df5b9f45747937fb0d72314eb9f7b66930a",
    "facebookresearch/dlrm": "090956ee2319ddd349a42232958aefccfe3f7b0a",
    "facebookresearch/ijepa": "52c1ae95d05f743e000e8f10a1f3a79b10cff048",
    "facebookresearch/schedule_free": "70785b53e778d0e872c0bbb75ff4ee54ee10c291",
    "facebookresearch/segment-anything": "dca509fe793f601edb92606367a655c15ac00fdf",
    "facebookresearch/simsiam": "a7bc1772896d0dad0806c51f0bb6f3b16d290468",
    "facebookresearch/vicreg": "4e12602fd495af83efd1631fbe82523e6db092e0",
    "fmu2/PyTorch-MAML": "19246a1ff9a1f47470dce80ed9e9332042f9e151",
    "GitYCC/crnn-pytorch": "f145a61e20e57a36b8f2d642f93c9ba2890cd042",
    "graykode/gpt-2-Pytorch": "401078fde5e85475590dc04c9ed11b79332b8717",
    "gusye1234/LightGCN-PyTorch": "947ca2b3b1d2d3545b114145710cb06c4e57b3d2",
    "HobbitLong/SupContrast": "66a8fe53880d6a1084b2e4e0db0a019024d6d41a",
    "HazyResearch/zoology": "d88d6f5474f36998d82d5c3bd58a190248d0a669",
    "hazdzz/STGCN": "34a1cbd3485751a7fc4745a948946f459abeae11",
    "huggingface/accelerate": "16cb6eb80dd9aa8b4df1a63ef57863e455d53b83",
    "huggingface/diffusers": "58eb52c0803ea9af3abec60841c2a093bdf1f951",
    "huggingface/peft": "5d602fdbff04c33c1c4de55cda9d4ae1d7cb7e40",
    "huggingface/pytorch-image-models": "aa4b5850c1543fa488abf260f18390eda46cf85d",
    "huggingface/trl": "f2cd57710ae345ea6428ae95363267fcf38a3dc8",
    "ikostrikov/pytorch-flows": "bf12ed91b86867b38d74982f5e2d44c248604df9",
    "jahongir7174/YOLOv8-pt": "a53336ba72ea9114b99f848329475abca43e180a",
    "joeynmt/joeynmt": "cdc4d03d430a1b0f29793a0d95743c5e72ae2f6c",
    "Kaixhin/PlaNet": "28c8491bc01e8f1b911300749e04c308c03db051",
    "karpathy/llama2.c": "350e04fe35433e6d2941dce5a1f53308f87058eb",
    "karpathy/llm.c": "f1e2ace651495b74ae22d45d1723443fd00ecd3a",
    "karpathy/makemore": "988aa59e4d8fefa526d06f3b453ad116258398d4",
    "karpathy/minGPT": "37baab71b9abea1b76ab957409a1cc2fbfba8a26",
    "karpathy/nanoGPT": "3adf61e154c3fe3fca428ad6bc3818b27a3b8291",
    "karpathy/ng-video-lecture": "52201428ed7b46804849dea0b3ccf0de9df1a5c3",
    "KellerJordan/cifar10-airbench": "f1c599c4af24aca803e3e65a6a7e52a502e09d0e",
    "Khrylx/PyTorch-RL": "72069237b4d86bcb9675b899ea94228019a4f003",
    "leftthomas/SRGAN": "7ddfdf27273c42d858ec52cab5ca1cbfca81d0be",
    "Lightning-AI/pytorch-lightning": "7f0c3436cd3f6ad3753125672024fc415cbcb414",
    "locuslab/fast_adversarial": "54f728755e71857b632882ba6d6cef22f56e2172",
    "locuslab/TCN": "2f8c2b817050206397458dfd1f5a25ce8a32fe65",
    "lucidrains/vector-quantize-pytorch": "0d7d1aa83334b6f2f8a40306bece75cdaa13d065",
    "lucidrains/x-transformers": "9252ed7838021ee61e6c5be0930b3a9a88efdf06",
    "lukasruff/Deep-SVDD-PyTorch": "1901612d595e23675fb75c4ebb563dd0ffebc21e",
    "lululxvi/deepxde": "99b6620386d18cefb1549dddb7b7fe468cfad607",
    "Megvii-BaseDetection/YOLOX": "6ddff4824372906469a7fae2dc3206c7aa4bbaee",
    "microsoft/LoRA": "c4593f060e6a368d7bb5af5273b8e42810cdef90",
    "microsoft/Swin-Transformer": "f82860bfb5225915aca09c3227159ee9e1df874d",
    "milesial/Pytorch-UNet": "21d7850f2af30a9695bbeea75f3136aa538cfc4a",
    "mlfoundations/open_clip": "89fb801f1e6087880e951fc8354b8a2077b79c6d",
    "MorvanZhou/PyTorch-Tutorial": "dbe154a9e56635e51c6b0c2ccea8ae36cfb585a7",
    "naoto0804/pytorch-AdaIN": "47950d0e6656a95a80a4b105c4c0f58d38ef785c",
    "nikhilbarhate99/Char-RNN-PyTorch": "2cf836f236542fe4bc92593582dd66219bbceba4",
    "nnzhan/MTGNN": "f811746fa7022ebf336f9ecd2434af5f365ecbf6",
    "openai/improved-diffusion": "1bc7bbbdc414d83d4abf2ad8cc1446dc36c4e4d5",
    "openai/whisper": "c0d2f624c09dc18e709e37c2ad90c039a4eb72a2",
    "pmixer/SASRec.pytorch": "fde8a9c08febc2c898dc269b1d98ab762c50d2be",
    "pranz24/pytorch-soft-actor-critic": "c1805660b3961694be54079a355155a5cad492f5",
    "princeton-vl/RAFT": "2888e15a51fa41140771d3f498ed8023cff098d1",
    "ProGamerGov/neural-style-pt": "72514050755394270abf526252cb9ff95c20dcf2",
    "Project-MONAI/tutorials": "b3c6c998c931d78b61c4d32b37f962a987400f8a",
    "pyg-team/pytorch_geometric": "5c6461b2305ad068a6d61165b3c55852a11aaa41",
    "pyro-ppl/pyro": "ff6ae1c9572591791aae8842bcd702fcf0b46fd6",
    "pytorch-labs/gpt-fast": "32971d3129541c5bfb4f715abc33d1c5f408d204",
    "pytorch/examples": "77f55b912142e11fcfdf5b530231fb9c52f181e8",
    "pytorch/ignite": "de08e799cfb55a6cf4aa778575d6bad725385453",
    "pytorch/opacus": "4d0ebc84613d214fbfd37fbfd1390e3747a625ce",
    "pytorch/tutorials": "afcd669d56554c2ef46f2da92edbfaf8c54043ec",
    "rahulvigneswaran/Lottery-Ticket-Hypothesis-in-Pytorch": "34a8c9678406a1c7dd0fec4c9f0d25d017be55fb",
    "rasbt/deeplearning-models": "18e046926551378cd691fd871dda0f21dcd272ab",
    "rasbt/LLMs-from-scratch": "28c65cdfbc3338e2e040016eea4b7fdf556e4d57",
    "rixwew/pytorch-fm": "f74ad19771eda104e99874d19dc892e988ec53fa",
    "rosinality/glow-pytorch": "97081ff115a694cf04aeedbd58447f33d242c879",
    "rosinality/vq-vae-2-pytorch": "ef5f67c46f93624163776caec9e0d95063910eca",
    "rtqichen/torchdiffeq": "657943acefa826ef04c025ebeb1ff5e9d60dc268",
    "sfujim/TD3": "34770ccdcb51df6f6c7d85c1ba7e40d71b940d16",
    "sfujim/TD7": "c1c280de1513f474488061b4cf39642b75dd84bd",
    "shaoxiongji/federated-learning": "5a9da1acd210aef030ff3841665c6d0cc0c8be23",
    "skorch-dev/skorch": "5db0ddc962117a2c3a646910ecd2e70253ff8e87",
    "state-spaces/s4": "e757cef57d89e448c413de7325ed5601aceaac13",
    "taesungp/contrastive-unpaired-translation": "b3ac297708dfb6f7589d04662277e53c0d579c27",
    "threelittlemonkeys/lstm-crf-pytorch": "84618e7d94d4ed274a0e6d833772449cf4378289",
    "threelittlemonkeys/rnn-encoder-decoder-pytorch": "ba2bf25156b4513093aee4f9c3ab90a97fddc489",
    "thuml/Time-Series-Library": "4e938a1767106324dd753b2a44832bf870a0252e",
    "Tiiiger/SGC": "2c7a2727e82e462d8ef9d6e57f0b08888e16488f",
    "tinyzqh/light_mappo": "a3be31570fcc5a3b41b515082d4ccf2ac3f3da3a",
    "tkipf/pygcn": "1600b5b748b3976413d1e307540ccc62605b4d6d",
    "tqch/ddpm-torch": "b60eb8deee899900c28525fd77ff53cdd26d6558",
    "tysam-code/hlb-CIFAR10": "993965202fc4dc05b699a39db33c00f1c7f647fd",
    "UKPLab/sentence-transformers": "504de8bbc4f9b274493fe3682937c448ae6f1b02",
    "ultralytics/ultralytics": "v8.4.190",
    "ultralytics/yolov5": "5081342f04fb287fc2e5f2b5a4e06752b7937b1c",
    "usuyama/pytorch-unet": "a0ec1374e06ca9161c21781302328b074f19391b",
    "uvipen/Tetris-deep-Q-learning-pytorch": "aaa937679989e6008f3daec583d989447b4824fc",
    "VainF/DeepLabV3Plus-Pytorch": "4e1087de98bc49d55b9239ae92810ef7368660db",
    "vwxyzjn/cleanrl": "fe8d8a03c41a7ef5b523e2e354bd01c363e786bb",
    "WangYueFt/dgcnn": "f765b469a67730658ba554e97dc11723a7bab628",
    "weihua916/powerful-gnns": "9a2ce8ac3e99278307093a464a95caf0fb04b602",
    "XinJingHao/DRL-Pytorch": "83486646f12d44e4e94a834e495b81a8f2710055",
    "yanx27/Pointnet_Pointnet2_pytorch": "eb64fe0b4c24055559cea26299cb485dcb43d8dd",
    "yenchenlin/nerf-pytorch": "63a5a630c9abd62b0f21c08703d0ac2ea7d4b9dd",
    "yjn870/SRCNN-pytorch": "064dbaac09859f5fa1b35608ab90145e2d60828b",
    "YuliaRubanova/latent_ode": "c0682d4f52b806fb88d965755892eadd9783f936",
    "yunjey/pytorch-tutorial": "0500d3df5a2a8080ccfccbc00aca0eacc21818db",
    "yunjey/stargan": "94dd002e93a2863d9b987a937b85925b80f7a19f",
}

ONE = "-m torch.distributed.run --standalone --nproc-per-node 1"
TWO = "-m torch.distributed.run --standalone --nproc-per-node 2"
NANO = (
    "train.py config/train_shakespeare_char.py --max_iters=120 --eval_interval=60 --eval_iters=20 --batch_size=16"
    " --block_size=128 --log_interval=10"
)
LLAMA2 = (
    "train.py --compile=False --eval_iters=10 --eval_interval=40 --max_iters=80 --batch_size=8 --warmup_iters=10"
    " --always_save_checkpoint=True"
)
DLRM = (
    "dlrm_s_pytorch.py --use-gpu --data-generation=random --arch-sparse-feature-size=16"
    " --arch-embedding-size=1000-1000-1000 --arch-mlp-bot=13-64-16 --arch-mlp-top=64-32-1 --mini-batch-size=128"
    " --nepochs=1 --print-time"
)
DIFFUSION = "-m tools.train_ddpm --config {data}/diffusion/config.yaml"
BARLOW = "main.py {data}/imagefolder --epochs 4 --batch-size 64 --workers 4 --print-freq 10 --projector 512-512-512"
WORDS = {name: f"reversed_words/{name}" for name in ("letters", "words", "train.csv", "test.txt")}
TRANSLATION = "train.py model letters words words train.csv 30"
MNIST = {"data": "mnist"}
SHAKESPEARE = {"data/shakespeare_char": "shakespeare_char"}
BOXES = [f"{kind}{split}2017{end}" for split in ("train", "val")
         for kind, end in (("images/", ""), ("labels/", ""), ("", ".txt"))]  # fmt: skip
HUB = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}

PROGRAMS = (
    # Language models
    Program("nanogpt", "training, estimates its loss at iteration 0 and every 60", "karpathy/nanoGPT",
            NANO + " --compile=False", data=SHAKESPEARE),
    Program("nanogpt-compiled", "training and evaluation, compiled", "karpathy/nanoGPT",
            NANO + " --compile=True", data=SHAKESPEARE, seconds=180),
    Program("nanogpt-sample", "generation", "karpathy/nanoGPT",
            "sample.py --out_dir=out-shakespeare-char --num_samples=3 --max_new_tokens=200 --start=ABC",
            data=SHAKESPEARE, before=NANO + " --compile=False --always_save_checkpoint=True"),
    Program("mingpt", "training, a callback evaluates at iteration 0 and every 500", "karpathy/minGPT",
            "projects/adder/adder.py --trainer.max_iters=700", environment={"PYTHONPATH": "."}),
    Program("mingpt-notebook", "a notebook kernel: training, then generation", "karpathy/minGPT",
            "{bin}/jupyter-execute --timeout 120 demo.ipynb", environment={"PYTHONPATH": "."}, seconds=150),
    Program("llama2.c", "training, evaluates at iteration 0, saves checkpoints", "karpathy/llama2.c", LLAMA2,
            data={"data": "tinystories"}),
    Program("llama2.c-sample", "generation", "karpathy/llama2.c",
            "sample.py --num_samples=3 --max_new_tokens=150", data={"data": "tinystories"}, before=LLAMA2),
    Program("gpt-fast", "generation", "pytorch-labs/gpt-fast",
            "generate.py --checkpoint_path checkpoints/stories15M/model.pth --num_samples 5 --max_new_tokens 150",
            data={"checkpoints": "checkpoint"}),
    Program("makemore", "training, samples every 200 steps, evaluates every 500", "karpathy/makemore",
            "makemore.py --device cuda --max-steps 1100"),
    Program("x-transformers", "training with accumulation, validates and generates at iteration 0",
            "lucidrains/x-transformers",
            "train_enwik8.py --num_batches 61 --validate_every 20 --generate_every 30 --generate_length 64",
            data={"data/enwik8.gz": "enwik8/enwik8.gz"}),
    Program("word-language-model", "training, evaluation, test", "pytorch/examples",
            "main.py --accel --epochs 2 --data {data}/wikitext", folder="word_language_model"),
    Program("language-model-tutorial", "training, then sampling", "yunjey/pytorch-tutorial", "main.py",
            folder="tutorials/02-intermediate/language_model",
            data={"tutorials/02-intermediate/language_model/data/train.txt": "wikitext/valid.txt"}),
    Program("bigram", "training, estimates its loss at iteration 0 and every 300, then generation",
            "karpathy/ng-video-lecture", "bigram.py", data={"input.txt": "wikitext/valid.txt"}),
    Program("llms-train", "training, evaluates every 5 steps, generation after each epoch", "rasbt/LLMs-from-scratch",
            "gpt_train.py", folder="ch05/01_main-chapter-code",
            data={"ch05/01_main-chapter-code/the-verdict.txt": "wikitext/valid.txt",
                  "ch05/01_main-chapter-code/tiktoken.py": "byte_tokenizer/tiktoken.py"}),
    Program("llms-generate", "generation with a cache of its own", "rasbt/LLMs-from-scratch", "gpt_with_kv_cache.py",
            folder="ch04/03_kv-cache", data={"ch04/03_kv-cache/tiktoken.py": "byte_tokenizer/tiktoken.py"}),
    Program("word-transformer", "training, evaluation, test", "pytorch/examples",
            "main.py --accel --epochs 2 --model Transformer --data {data}/wikitext", folder="word_language_model"),
    Program("trl-sft", "a trainer of trl's: training, evaluation, checkpoints", "huggingface/trl",
            "trl/scripts/sft.py --model_name_or_path {data}/tiny_llama --dataset_name {data}/texts --output_dir out"
            " --num_train_epochs 2 --per_device_train_batch_size 8 --eval_strategy steps --eval_steps 40"
            " --logging_steps 10 --report_to none --bf16 False --seed 1",
            environment=HUB),
    Program("bert", "one loop for training and test, the model goes to the CPU and back to be saved after each epoch",
            "codertimo/BERT-pytorch",
            "bert -c {data}/sentences/train.txt -t {data}/sentences/test.txt -v vocabulary -o bert.model -hs 128 -l 3"
            " -a 4 -b 32 -e 4 -w 2", before="bert-vocab -c {data}/sentences/train.txt -o vocabulary",
            environment={"PYTHONPATH": "."},
            data={"bert": "sentences/bert", "bert-vocab": "sentences/bert-vocab"}),
    Program("llm.c", "ten steps, compiled: validation before the first, after five and at the end", "karpathy/llm.c",
            "train_gpt2.py --model d12 --compile 1 --write_tensors 0 --input_bin {data}/tokens/train.bin"
            " --input_val_bin {data}/tokens/val.bin --val_loss_every 5",
            data={"tiktoken.py": "byte_tokenizer/tiktoken.py"}, seconds=180),
    Program("char-rnn", "100 short epochs of a recurrent network, 200 letters drawn after each",
            "nikhilbarhate99/Char-RNN-PyTorch", "CharRNN.py", data={"data/shakespeare.txt": "letters/text.txt"}),
    Program("titles", "a text classifier, evaluated every 100 steps; test of the best",
            "649453932/Chinese-Text-Classification-Pytorch", "run.py --model TextRNN_Att --embedding random",
            data={f"THUCNews/data/{name}.txt": f"titles/{name}.txt" for name in ("train", "dev", "test", "class")}),
    Program("gpt-fast-compiled", "generation, its step compiled into CUDA graphs", "pytorch-labs/gpt-fast",
            "generate.py --checkpoint_path checkpoints/stories15M/model.pth --num_samples 5 --max_new_tokens 150"
            " --compile", data={"checkpoints": "checkpoint"}, seconds=150),
    Program("gpt2", "training that empties the cache of the allocator twice a step, one evaluation every 20 steps",
            "affjljoo3581/GPT2",
            "-m gpt2 train --train_corpus {data}/subwords/train.txt --eval_corpus {data}/subwords/eval.txt --vocab_path"
            " {data}/subwords/vocabulary.txt --layers 4 --heads 4 --dims 256 --batch_train 32 --batch_eval 32"
            " --total_steps 400 --eval_steps 20 --save_steps 200", environment={"PYTHONPATH": "src"}),
    Program("bert-titles", "fine-tuning a BERT of its own: an evaluation every 100 steps, the best saved; test",
            "649453932/Bert-Chinese-Text-Classification-Pytorch", "run.py --model bert",
            data={"boto3.py": "no_storage/boto3.py", "botocore": "no_storage/botocore",
                  "THUCNews/saved_dict/vocab.txt": "reader/vocab.txt",
                  **{f"bert_pretrain/{name}": f"reader/{name}"
                     for name in ("bert_config.json", "pytorch_model.bin", "vocab.txt")},
                  **{f"THUCNews/data/{name}.txt": f"headlines/{name}.txt"
                     for name in ("train", "dev", "test", "class")}}),
    Program("adaptive-span", "accumulation over two parts, a span read in each layer, evaluation by the same function",
            "facebookresearch/adaptive-span",
            "main.py --data corpus --nlayers 4 --hid-sz 128 --inner-hid-sz 512 --nheads 4 --attn-span 256 --block-sz 64"
            " --batch-sz 16 --batch-split 2 --optim adagrad --lr 0.07 --momentum 0 --grad-clip 0.03 --lr-warmup 100"
            " --adapt-span --adapt-span-loss 0.0005 --adapt-span-cache --niter 10 --nbatches 60 --checkpoint span.pt",
            data={f"corpus/{split}.txt": f"wikitext/{split}.txt" for split in ("train", "valid", "test")}),
    Program("gpt2-samples", "generation of four texts at a time, read once they are whole", "graykode/gpt-2-Pytorch",
            "main.py --text Once --nsamples 16 --batch_size 4 --length 250 --top_k 0",
            data={"gpt2-pytorch_model.bin": "gpt2_weights/gpt2-pytorch_model.bin"}),
    # Sequences and equations
    Program("tcn-adding", "training, an evaluation in one call after each epoch", "locuslab/TCN",
            "add_test.py --epochs 2 --seq_len 200", folder="TCN/adding_problem"),
    Program("tcn-copying", "training, an evaluation in one call after each epoch", "locuslab/TCN",
            "copymem_test.py --epochs 2 --blank_len 500", folder="TCN/copy_memory"),
    Program("ode-demo", "training through a solver, evaluates every 20 steps", "rtqichen/torchdiffeq",
            "examples/ode_demo.py --niters 200 --data_size 200", environment={"PYTHONPATH": "."}),
    Program("cevae", "a fit method: an optimizer for each parameter, then one estimate", "pyro-ppl/pyro",
            "synthetic.py --cuda --num-epochs 40 --num-data 2000", folder="examples/contrib/cevae"),
    Program("nuts", "Hamiltonian Monte Carlo: gradients, no optimizer", "pyro-ppl/pyro",
            "lkj.py --cuda --num-chains 1 --num-samples 40 --warmup-steps 30", folder="examples"),
    Program("gp-notebook", "a notebook kernel: 50 steps of a Gaussian process, one prediction",
            "cornellius-gp/gpytorch", "{bin}/jupyter-execute --timeout 120 Simple_GP_Regression_CUDA.ipynb",
            folder="examples/02_Scalable_Exact_GPs"),
    Program("dlrm", "recommendation: training, test every 400 steps", "facebookresearch/dlrm",
            DLRM + " --data-size=128000 --print-freq=200 --test-freq=400"),
    Program("dlrm-profiled", "the same, which runs a profiler of its own", "facebookresearch/dlrm",
            DLRM + " --data-size=12800 --print-freq=20 --test-freq=50 --enable-profiling"),
    Program("sentence-transformers", "sentence pairs: training and evaluation by a library's trainer, test",
            "UKPLab/sentence-transformers", "training_stsbenchmark.py {data}/tiny_bert",
            folder="examples/training/sts", environment=HUB,
            data={"examples/training/sts/datasets/stsbenchmark.tsv.gz": "sentence_pairs/stsbenchmark.tsv.gz"}),
    Program("time-series", "training, evaluation of two sets after each epoch, test", "thuml/Time-Series-Library",
            "run.py --task_name long_term_forecast --is_training 1 --root_path {data}/ett --data_path ETTh1.csv"
            " --model_id ETTh1_96_96 --model DLinear --data ETTh1 --features M"
            " --train_epochs 2 --num_workers 4", data={"sktime": "ett/sktime", "patoolib.py": "ett/patoolib.py"}),
    Program("deepxde-ode", "10,000 steps in one call of train, a test every 1000", "lululxvi/deepxde", "ode_2nd.py",
            folder="examples/pinn_forward", environment={"PYTHONPATH": ".", "DDE_BACKEND": "pytorch"},
            seconds=150),
    Program("sasrec", "recommendation: batches by forked processes, an evaluation of one user at a time",
            "pmixer/SASRec.pytorch",
            "main.py --dataset ratings --train_dir default --maxlen 50 --num_epochs 40 --device cuda", folder="python",
            data={"python/data/ratings.txt": "ratings/ratings.txt"}),
    Program("lightgcn", "recommendation over a sparse graph: a test before the first and after the tenth epoch",
            "gusye1234/LightGCN-PyTorch", "main.py --bpr_batch 512 --epochs 11 --seed 1", folder="code",
            data={"data/gowalla/train.txt": "gowalla/train.txt", "data/gowalla/test.txt": "gowalla/test.txt"}),
    Program("word2vec", "sparse gradients of embeddings, an optimizer an epoch", "Andras7/word2vec-pytorch",
            "-m word2vec.trainer", environment={"PYTHONPATH": "."}, data={"input.txt": "wikitext/train.txt"}),
    Program("lora-gpt2", "torchrun with one process, DDP of which a part is trained: evaluates every 60 steps",
            "microsoft/LoRA",
            "src/gpt2_ft.py --platform local --train_data {data}/completions/train.jsonl --valid_data"
            " {data}/completions/valid.jsonl --train_batch_size 8 --valid_batch_size 8 --seq_len 128"
            " --model_card gpt2.sm --lora_dim 4 --lora_alpha 32 --lora_dropout 0.1 --clip 1.0 --label_smooth 0.1"
            " --max_epoch 2 --log_interval 10 --eval_interval 60 --save_interval 80 --work_dir out",
            folder="examples/NLG", environment={"PYTHONPATH": "."}, launcher=ONE),
    Program("s4", "100 short epochs: training, evaluation of two sets, a checkpoint of the best", "state-spaces/s4",
            "example.py --dataset mnist --n_layers 2 --d_model 64 --batch_size 100 --num_workers 0 --weight_decay 0",
            data={"data": "mnist1k"}),
    Program("deepfm", "recommendation: training, an evaluation an epoch, which may end it; test", "rixwew/pytorch-fm",
            "examples/main.py --dataset_name criteo --dataset_path {data}/clicks/train.txt --model_name dfm --epoch 4"
            " --batch_size 128 --save_dir .", environment={"PYTHONPATH": "."}),
    Program("srgnn", "recommendation by graphs of sessions: training, a prediction an epoch with gradients on",
            "CRIPAC-DIG/SR-GNN", "main.py --dataset sample --epoch 3", folder="pytorch_code",
            data={f"datasets/sample/{name}.txt": f"sessions/{name}.txt" for name in ("train", "test")}),
    Program("mtgnn", "ten trainings in turn, after each a model that is read and evaluated on two sets", "nnzhan/MTGNN",
            "train_single_step.py --data {data}/traffic/speeds.txt --save best.pt --device cuda:0 --num_nodes 40"
            " --subgraph_size 10 --seq_in_len 24 --epochs 2", environment={"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}),
    Program("joeynmt", "translation: AMP with accumulation, validates by beam search every 50 steps, tests the best",
            "joeynmt/joeynmt", "-m joeynmt train {data}/reversals/config.yaml", environment={"PYTHONPATH": "."},
            data={"joeynmt-2.3.0.dist-info": "reversals/joeynmt-2.3.0.dist-info"}),
    Program("lstm-crf", "tags of words: indices on the GPU taken one by one, over a thousand a step; two evaluations",
            "threelittlemonkeys/lstm-crf-pytorch",
            "train.py model train.char_to_idx train.word_to_idx train.tag_to_idx train.csv valid 20",
            before="prepare.py train", data={"train": "tagged/train", "valid": "tagged/valid"}),
    Program("latent-ode", "two solvers of differential equations in each step, a test every fourth",
            "YuliaRubanova/latent_ode",
            "run_models.py --niters 12 -n 200 -s 50 -l 10 --dataset periodic --latent-ode --noise-weight 0.01"),
    Program("autovc", "speech: a loader by hand in one loop, three losses read in each step", "auspicious3000/autovc",
            "main.py --data_dir {data}/spectra --num_iters 800"),
    Program("translation", "recurrent networks with an optimizer each, batches made on the GPU from lists beforehand",
            "threelittlemonkeys/rnn-encoder-decoder-pytorch", TRANSLATION, data=WORDS),
    Program("translation-greedy", "translation, no optimizer: the tokens are read after each step of the decoder",
            "threelittlemonkeys/rnn-encoder-decoder-pytorch", "predict.py model.epoch30 letters words words test.txt",
            data=WORDS, before=TRANSLATION),
    Program("whisper", "speech to text: a beam search of five, its candidates read one by one", "openai/whisper",
            "-m whisper " + " ".join(f"{{data}}/voices/wav/test{n // 5}/{n % 5}.wav" for n in range(10))
            + " --model small.pt --temperature_increment_on_fallback None",
            environment={"PYTHONPATH": ".", "PATH": ".:/usr/bin:/bin"},
            data={name: f"transcriber/{name}" for name in ("small.pt", "numba.py", "ffmpeg")}, seconds=120),
    Program("zoology", "recall of pairs: a loss read twice in each step, an evaluation an epoch measured on the CPU",
            "HazyResearch/zoology", "-m zoology.launch {data}/recall/config.py",
            environment={"PYTHONPATH": "."}),
    # Pictures
    Program("mnist", "training, evaluation", "pytorch/examples", "main.py --epochs 2", folder="mnist", data=MNIST),
    Program("mnist-rnn", "training, evaluation", "pytorch/examples", "main.py --accel --epochs 2",
            folder="mnist_rnn", data=MNIST),
    Program("mofan-gpu", "training at the top of the file, tests every 50 steps in the same loop",
            "MorvanZhou/PyTorch-Tutorial", "502_GPU.py", folder="tutorial-contents",
            data={"tutorial-contents/mnist": "mnist"}),
    Program("quickstart", "PyTorch's first tutorial: training and evaluation", "pytorch/tutorials",
            "quickstart_tutorial.py", folder="beginner_source/basics",
            data={"beginner_source/basics/data": "mnist"}),
    Program("transfer-learning", "training and validation by one loop, of a whole network and of its last layer",
            "EricHuang49/PyTorch-TransferLearning-Tutorial", "transfer_learning_tutorial.py",
            data={"hymenoptera_data": "bees"}),
    Program("hogwild", "spawned workers that share a model", "pytorch/examples", "main.py --cuda --epochs 1",
            folder="mnist_hogwild", data=MNIST),
    Program("siamese", "training, evaluation", "pytorch/examples", "main.py --epochs 1",
            folder="siamese_network", data=MNIST),
    Program("forward-forward", "training layer by layer", "pytorch/examples",
            "main.py --epochs 60 --train_size 2000 --test_size 500", folder="mnist_forward_forward",
            data={"mnist_forward_forward/data": "mnist"}),
    Program("vae", "training, evaluation, a sample an epoch", "pytorch/examples", "main.py --epochs 3", folder="vae",
            data=MNIST),
    Program("imagenet", "training, validation, checkpoint", "pytorch/examples",
            "main.py {data}/imagefolder -a resnet18 -b 32 -j 4 --epochs 2 --seed 1", folder="imagenet"),
    Program("timm", "training, validation, checkpoint", "huggingface/pytorch-image-models",
            "train.py {data}/imagefolder --model resnet18 -b 32 --epochs 2 --num-classes 10 -j 4 --img-size 96 --amp"),
    Program("torchvision-classification", "training with AMP and an EMA model, evaluation of both",
            "chanwutk/vision_references",
            "train.py --data-path {data}/imagefolder --model resnet18 --epochs 2 -b 32 -j 4 --amp --model-ema",
            folder="references/classification"),
    Program("hlb-cifar10", "training, evaluation, an EMA model", "tysam-code/hlb-CIFAR10", "main.py",
            data={"data.pt": "cifar_tensors/data.pt"}),
    Program("unet", "segmentation: training, evaluates five times an epoch", "milesial/Pytorch-UNet",
            "train.py --epochs 2 --batch-size 4 --amp", data={"data/imgs": "masks/imgs", "data/masks": "masks/masks"}),
    Program("super-resolution", "training, test, checkpoint", "pytorch/examples",
            "main.py --upscale_factor 3 --batchSize 4 --testBatchSize 10 --nEpochs 3 --accel",
            folder="super_resolution", data={"super_resolution/dataset": "bsds"}),
    Program("fast-neural-style", "training", "pytorch/examples",
            "neural_style/neural_style.py train --dataset {data}/imagefolder/train --style-image"
            " {data}/imagefolder/val/c0/0.jpg --save-model-dir out --epochs 1 --batch-size 8 --accel --log-interval 20",
            folder="fast_neural_style"),
    Program("dino", "self-supervised training, two networks", "facebookresearch/dino",
            "main_dino.py --arch vit_tiny --data_path {data}/imagefolder/train --output_dir . --epochs 1"
            " --batch_size_per_gpu 16 --local_crops_number 4 --num_workers 4 --warmup_epochs 0"),
    Program("airbench", "25 trainings in turn with two optimizers, one compiled; evaluation of several views",
            "KellerJordan/cifar10-airbench", "research/airbench94_muon_simple.py", environment={"PYTHONPATH": "."},
            data={"cifar10": "cifar10_tensors"}),
    Program("ddpm", "diffusion: training", "explainingai-code/DDPM-Pytorch", DIFFUSION),
    Program("ddpm-sample", "diffusion: 300 pictures from noise, a step at a time", "explainingai-code/DDPM-Pytorch",
            "-m tools.sample_ddpm --config {data}/diffusion/config.yaml", before=DIFFUSION),
    Program("glow", "a flow: one pass without gradients, then training", "rosinality/glow-pytorch",
            "train.py {data}/imagefolder/train --iter 100 --n_flow 16"),
    Program("improved-diffusion", "diffusion: DDP in one process, training by a method for each step",
            "openai/improved-diffusion",
            "scripts/image_train.py --data_dir {data}/pictures32 --image_size 32 --num_channels 32 --num_res_blocks 1"
            " --diffusion_steps 100 --batch_size 16 --microbatch 8 --lr_anneal_steps 150 --save_interval 50"
            " --use_fp16 True", environment={"PYTHONPATH": "."},
            data={"mpi4py": "one_process/mpi4py", "blobfile.py": "one_process/blobfile.py"}),
    Program("segment-anything", "masks of pictures, by a grid of points", "facebookresearch/segment-anything",
            "scripts/amg.py --input {data}/sam/pictures --output masks --model-type vit_b --checkpoint"
            " {data}/sam/vit_b.pth --pred-iou-thresh -100 --stability-score-thresh 0",
            environment={"PYTHONPATH": "."}),
    Program("ignite-mnist", "Ignite: training, evaluation of both sets", "pytorch/ignite", "mnist.py --epochs 3",
            folder="examples/mnist", data={"examples/mnist/MNIST": "mnist/MNIST"}),
    Program("neural-style", "one call of L-BFGS that evaluates its closure 400 times", "ProGamerGov/neural-style-pt",
            "neural_style.py -style_image {data}/imagefolder/val/c0/0.jpg -content_image"
            " {data}/imagefolder/val/c1/0.jpg -model_file {data}/vgg19/vgg19.pth -disable_check -image_size 256"
            " -num_iterations 400 -print_iter 50 -save_iter 100 -gpu 0 -seed 1"),
    Program("schedule-free", "an optimizer that is switched to evaluation and back", "facebookresearch/schedule_free",
            "main.py --epochs 4", folder="examples/mnist", environment={"PYTHONPATH": "."},
            data={"examples/data": "mnist"}),
    Program("supcon", "contrastive training of two views, checkpoints", "HobbitLong/SupContrast",
            "main_supcon.py --dataset path --data_folder {data}/imagefolder/train --mean (0.5,0.5,0.5)"
            " --std (0.5,0.5,0.5) --model resnet18 --batch_size 64 --num_workers 8 --epochs 8 --save_freq 4 --cosine",
            data={"tensorboard_logger.py": "silent_loggers/tensorboard_logger.py"}),
    Program("clip", "two encoders with one loss, AMP in bfloat16, a checkpoint an epoch", "mlfoundations/open_clip",
            "-m open_clip_train.main --dataset-type synthetic --train-num-samples 3840 --model ViT-S-32-alt"
            " --batch-size 64 --epochs 2 --warmup 10 --workers 4 --precision amp_bf16 --log-every-n-steps 5",
            environment={"PYTHONPATH": "src"}),
    Program("srcnn", "patches from a file by workers: training, an evaluation of one picture at a time",
            "yjn870/SRCNN-pytorch",
            "train.py --train-file {data}/patches/train.h5 --eval-file {data}/patches/eval.h5 --outputs-dir out"
            " --num-epochs 6"),
    Program("monai-array", "segmentation: training, sliding windows with a metric every second epoch",
            "Project-MONAI/tutorials", "unet_training_array.py", folder="2d_segmentation/torch"),
    Program("monai-dict", "segmentation of four crops a picture, sliding windows with a metric every second epoch",
            "Project-MONAI/tutorials", "unet_training_dict.py", folder="2d_segmentation/torch"),
    Program("deeplab", "segmentation by DataParallel: a loop of steps without end, validation every 40",
            "VainF/DeepLabV3Plus-Pytorch",
            "main.py --data_root {data}/voc --model deeplabv3plus_mobilenet --crop_size 129 --batch_size 8"
            " --total_itrs 120 --val_interval 40", data={"visdom.py": "silent_loggers/visdom.py"}),
    Program("raft", "optical flow by DataParallel with AMP: 12 rounds a step, a loop of steps without end",
            "princeton-vl/RAFT",
            "train.py --stage kitti --gpus 0 --num_steps 120 --batch_size 4 --image_size 160 256 --mixed_precision",
            environment={"PYTHONPATH": "core"}, data={"datasets/KITTI": "kitti"}),
    Program("nerf", "rays of a scene: resumed near the end, training, pictures without gradients every 200 steps",
            "yenchenlin/nerf-pytorch",
            "run_nerf.py --config configs/lego.txt --datadir {data}/scene --ft_path {data}/scene/199400.tar"
            " --i_print 20 --i_testset 200 --i_weights 200 --i_video 1000000"),
    Program("pointnet", "points: changed by NumPy before each step, training and test",
            "yanx27/Pointnet_Pointnet2_pytorch",
            "train_classification.py --model pointnet_cls --num_category 10 --num_point 512 --epoch 10 --log_dir one",
            data={"data/modelnet40_normal_resampled": "modelnet"}),
    Program("pointnet2", "points: 640 rounds of sampling in each forward, training and test",
            "yanx27/Pointnet_Pointnet2_pytorch",
            "train_classification.py --model pointnet2_cls_ssg --num_category 10 --num_point 512 --epoch 6"
            " --log_dir two", data={"data/modelnet40_normal_resampled": "modelnet"}, seconds=150),
    Program("flows", "training, two passes over whole sets an epoch", "ikostrikov/pytorch-flows",
            "main.py --dataset MOONS --flow realnvp --epochs 3"),
    Program("federated", "ten models of clients in turn, their mean; a test at the end",
            "shaoxiongji/federated-learning",
            "main_fed.py --dataset mnist --iid --model cnn --num_channels 1 --epochs 6 --gpu 0",
            data={"../data/mnist": "mnist"}),
    Program("adversarial", "20 steps of an attack before each step, with masks", "locuslab/fast_adversarial",
            "train_mnist.py --attack pgd --attack-iters 20 --alpha 0.1 --epochs 3", folder="MNIST",
            data={"mnist-data": "mnist"}),
    Program("dgcnn", "points by DataParallel: nearest neighbours in each layer, training and test",
            "WangYueFt/dgcnn", "main.py --epochs 6 --num_points 512 --batch_size 16", folder="pytorch",
            data={"pytorch/data/modelnet40_ply_hdf5_2048": "clouds"}),
    Program("adain", "style transfer: two endless loaders, five losses, a checkpoint every 100 steps",
            "naoto0804/pytorch-AdaIN",
            "train.py --content_dir {data}/imagefolder/train/c0 --style_dir {data}/imagefolder/train/c1 --vgg"
            " {data}/stylist/vgg_normalised.pth --max_iter 200 --save_model_interval 100 --n_threads 4"),
    Program("swin", "torchrun with one process, DDP: AMP with accumulation over two steps, a device wait a step",
            "microsoft/Swin-Transformer",
            "main.py --cfg configs/swin/swin_tiny_patch4_window7_224.yaml --data-path {data}/imagefolder"
            " --batch-size 16 --accumulation-steps 2 --output out --opts TRAIN.EPOCHS 3 TRAIN.WARMUP_EPOCHS 1"
            " TRAIN.LR_SCHEDULER.NAME step DATA.NUM_WORKERS 8 PRINT_FREQ 5", launcher=ONE),
    Program("vq-autoencoder", "training, codes told apart in each step", "lucidrains/vector-quantize-pytorch",
            "autoencoder.py --train_iter 400", folder="examples", environment={"PYTHONPATH": ".", "HOME": "."},
            data={"examples/data/fashion_mnist": "mnist"}),
    Program("deep-svdd", "an autoencoder and its test, then a training from its weights and to a quantile; test",
            "lukasruff/Deep-SVDD-PyTorch",
            "main.py mnist mnist_LeNet ../log ../data --objective soft-boundary --seed 1 --n_epochs 40"
            " --lr_milestone 30 --ae_n_epochs 12 --ae_lr_milestone 8 --batch_size 32 --ae_batch_size 32", folder="src",
            data={"data/MyMNIST": "mnist/MNIST"}),
    Program("lottery-ticket", "pruning: weights go to the CPU and back in each step, a test before each epoch",
            "rahulvigneswaran/Lottery-Ticket-Hypothesis-in-Pytorch",
            "main.py --arch_type lenet5 --dataset mnist --prune_iterations 2 --end_iter 4 --prune_percent 20",
            data={"../data": "mnist"}),
    Program("resnet-unet", "a notebook kernel: segmentation, training and evaluation by one loop of two turns",
            "usuyama/pytorch-unet", "{bin}/jupyter-execute --timeout 150 pytorch_resnet18_unet.ipynb", seconds=150),
    Program("maml", "meta-learning: gradients of five inner steps, in evaluation too", "fmu2/PyTorch-MAML",
            "train.py --config {data}/episodes/config.yaml", data={"materials/mini-imagenet": "episodes"}),
    Program("crnn", "words in pictures: eight batches without an optimizer, a beam search on the CPU after each",
            "GitYCC/crnn-pytorch", "src/evaluate.py",
            data={"data/mnt/ramdisk/max/90kDICT32px": "snippets",
                  "checkpoints/crnn_synth90k.pt": "crnn/crnn_synth90k.pt"}),
    Program("ddpm-ema", "diffusion with accumulation and an EMA model: its tables go to the GPU in each step; sampling",
            "tqch/ddpm-torch",
            "train.py --root {data}/mnist --config-path {data}/denoiser/digits.json --num-accum 2 --image-intv 2"
            " --chkpt-intv 2 --num-samples 64"),
    # Detection
    Program("torchvision-detection", "detection: training", "chanwutk/vision_references",
            "train.py --data-path {data}/coco --dataset coco --model fasterrcnn_mobilenet_v3_large_320_fpn --epochs 1"
            " -b 4 --lr 0.001", folder="references/detection"),
    Program("torchvision-segmentation", "segmentation: training, evaluation", "chanwutk/vision_references",
            "train.py --data-path {data}/coco --dataset coco --model lraspp_mobilenet_v3_large --epochs 1 -b 8",
            folder="references/segmentation"),
    Program("detr", "detection: training, evaluation", "facebookresearch/detr",
            "main.py --coco_path {data}/coco --backbone resnet18 --epochs 1 --batch_size 4 --output_dir ."),
    Program("yolov5", "detection: training, evaluation", "ultralytics/yolov5",
            "train.py --weights '' --cfg yolov5n.yaml --data coco128.yaml --epochs 2 --batch-size 16 --imgsz 320"
            " --noplots --workers 4", data={"../datasets/coco128": "coco128", "Arial.ttf": "font/Arial.ttf"}),
    Program("yolo", "detection by a library's command: training, validation, checkpoints", "ultralytics/ultralytics",
            "{bin}/yolo detect train model=yolov8n.yaml data=coco128.yaml epochs=3 imgsz=320 batch=16"
            " workers=4 plots=False amp=False project=runs", environment={"PYTHONPATH": "."},
            data={"datasets/coco128": "coco128", "polars.py": "few_polars/polars.py", "Arial.ttf": "font/Arial.ttf"}),
    Program("yolox", "detection by a trainer's methods: batches of another stream, AMP, an EMA model, evaluation of it",
            "Megvii-BaseDetection/YOLOX",
            "tools/train.py -n yolox-nano -d 1 -b 8 --fp16 max_epoch 4 no_aug_epochs 1 warmup_epochs 1 eval_interval 2"
            " data_dir {data}/coco test_conf 0.00005", environment={"PYTHONPATH": "."}, seconds=150),
    Program("yolov8-pt", "detection: AMP with accumulation, an EMA model, its evaluation and a checkpoint an epoch",
            "jahongir7174/YOLOv8-pt", "main.py --train --epochs 3 --input-size 320 --batch-size 16",
            environment={"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"},
            data={f"../Dataset/COCO/{name}": f"boxes/{name}" for name in BOXES}),
    # Adversarial networks
    Program("dcgan", "two networks in turn, pictures and weights at the end of an epoch", "pytorch/examples",
            "main.py --dataset fake --niter 2 --accel --manualSeed 1", folder="dcgan"),
    Program("vq-vae", "training, which makes a picture every 100 steps", "rosinality/vq-vae-2-pytorch",
            "train_vqvae.py {data}/imagefolder/train --size 64 --epoch 12"),
    Program("odenet", "a solver in the midst of a network: training, evaluation of both sets an epoch",
            "rtqichen/torchdiffeq", "examples/odenet_mnist.py --nepochs 2 --batch_size 64 --test_batch_size 250",
            data={".data/mnist": "mnist"}),
    Program("opacus", "gradients of each sample by hooks, an optimizer around the program's own; test",
            "pytorch/opacus", "mnist.py --device cuda -n 2 -b 64 --test-batch-size 250 --data-root {data}/mnist",
            folder="examples", environment={"PYTHONPATH": "."}),
    Program("wgan-gp", "two networks, one of them every fifth step", "eriklindernoren/PyTorch-GAN",
            "wgan_gp.py --n_epochs 6", folder="implementations/wgan_gp", data={"data/mnist": "mnist"}),
    Program("acgan", "two networks, pictures every 400 steps", "eriklindernoren/PyTorch-GAN", "acgan.py --n_epochs 5",
            folder="implementations/acgan", data={"data/mnist": "mnist"}),
    Program("gan-tutorial", "two networks, pictures at the end of an epoch", "yunjey/pytorch-tutorial", "main.py",
            folder="tutorials/03-advanced/generative_adversarial_network", data={"tutorials/data": "mnist1k"}),
    Program("srgan", "two networks in turn, evaluates one picture at a time", "leftthomas/SRGAN",
            "train.py --num_epochs 4", data={"data/DIV2K_train_HR": "pets", "data/DIV2K_valid_HR":
                                              "bsds/BSDS300/images/test"}),
    Program("wgan-notebook", "a notebook kernel: two networks, one of them five times a step, 100 epochs",
            "rasbt/deeplearning-models", "{bin}/jupyter-execute --timeout 120 wgan-1.ipynb",
            folder="pytorch_ipynb/gan", data={"pytorch_ipynb/gan/data": "mnist1k"}, seconds=150),
    Program("stargan", "two networks, one of them every fifth step, a gradient's norm, pictures every 100 steps",
            "yunjey/stargan",
            "main.py --dataset RaFD --rafd_image_dir {data}/imagefolder/train --rafd_crop_size 96 --image_size 64"
            " --c_dim 10 --num_workers 4 --num_iters 300 --num_iters_decay 100 --lr_update_step 50 --sample_step 100"
            " --model_save_step 150 --use_tensorboard False"),
    Program("cut", "three networks, one of which is made from the first batch; losses every 20 steps",
            "taesungp/contrastive-unpaired-translation",
            "train.py --dataroot datasets/one --name one --CUT_mode CUT --display_id 0 --n_epochs 1 --n_epochs_decay 1"
            " --load_size 72 --crop_size 64 --ngf 16 --ndf 16 --print_freq 20 --save_latest_freq 100 --display_freq 40",
            data={"datasets/one/trainA": "imagefolder/train/c0", "datasets/one/trainB": "imagefolder/train/c1"}),
    Program("ignite-dcgan", "Ignite: two networks, pictures and a checkpoint an epoch", "pytorch/ignite",
            "dcgan.py --dataset fake --dataroot . --batch-size 2 --epochs 3 --output-dir out", folder="examples/gan",
            environment={"PYTHONPATH": "."}),
    Program("rectified-flow", "a hundred short epochs: indices on the GPU taken one by one, pictures after each",
            "cloneofsimo/minRF", "rf.py", data={"data": "mnist1k"}, seconds=220),
    Program("stargan-v2", "four networks and their optimizers, 14 losses read in each step, EMA models, pictures",
            "clovaai/stargan-v2",
            "main.py --mode train --num_domains 2 --w_hpf 0 --img_size 64 --batch_size 4 --val_batch_size 8"
            " --total_iters 120 --print_every 10 --sample_every 40 --save_every 60 --num_workers 2"
            " --train_img_dir {data}/bees/train --val_img_dir {data}/bees/val",
            data={"skimage": "no_filters/skimage", "ffmpeg.py": "no_filters/ffmpeg.py"}),
    # Reinforcement learning
    Program("cleanrl-ppo", "rollouts, updates", "vwxyzjn/cleanrl", "cleanrl/ppo.py --total-timesteps 6000"),
    Program("cleanrl-dqn", "a policy's steps, an update every tenth", "vwxyzjn/cleanrl",
            "cleanrl/dqn.py --total-timesteps 6000 --learning-starts 1000 --buffer-size 5000",
            environment={"PYTHONPATH": "."}),
    Program("cleanrl-sac", "a policy's steps, several optimisers", "vwxyzjn/cleanrl",
            "cleanrl/sac_continuous_action.py --env-id MountainCarContinuous-v0 --total-timesteps 950"
            " --learning-starts 200 --buffer-size 5000", environment={"PYTHONPATH": "."}),
    Program("drl-ppo", "rollouts, updates, evaluation", "XinJingHao/DRL-Pytorch",
            "main.py --Max_train_steps 6500 --eval_interval 3000 --save_interval 4000", folder="3.1 PPO-Discrete"),
    Program("drl-sac", "rollouts, 50 updates every 50 steps, evaluation", "XinJingHao/DRL-Pytorch",
            "main.py --Max_train_steps 1800 --eval_interval 600", folder="5.2 SAC-Continuous"),
    Program("drl-dqn", "a policy's steps, 50 updates every 50, evaluation", "XinJingHao/DRL-Pytorch",
            "main.py --Max_train_steps 4000 --random_steps 1000 --eval_interval 1000", folder="2.1_Duel-Double-DQN"),
    Program("fabric-ppo", "Fabric: rollouts, updates, test", "Lightning-AI/pytorch-lightning",
            "train_fabric.py --num-envs 2 --total-timesteps 4096", folder="examples/fabric/reinforcement_learning"),
    Program("sb3-pytest", "pytest: 40 short trainings of agents", "DLR-RM/stable-baselines3",
            "-m pytest -q -p no:cacheprovider tests/test_run.py", environment={"PYTHONPATH": "."}),
    Program("td3", "a policy's steps with an update each, of the actor every second; evaluation before the first",
            "sfujim/TD3", "main.py --env Pendulum-v1 --start_timesteps 1000 --eval_freq 1500 --max_timesteps 4500",
            data={"gym.py": "old_gym/gym.py"}),
    Program("td7", "a policy's steps, an episode's updates after it; evaluation before the first, weights copied",
            "sfujim/TD7", "main.py --env Pendulum-v1 --timesteps_before_training 1000 --eval_freq 2000 --eval_eps 2"
            " --max_timesteps 2400", data={"gym.py": "old_gym/gym.py"}),
    Program("tetris", "a game: a policy's steps, an update at the end of each", "uvipen/Tetris-deep-Q-learning-pytorch",
            "train.py --num_epochs 150 --replay_memory_size 3000 --num_decay_epochs 100",
            data={"cv2.py": "no_window/cv2.py"}),
    Program("rl-processes", "rollouts by forked processes, for which the policy goes to the CPU and back; updates",
            "Khrylx/PyTorch-RL", "examples/ppo_gym.py --env-name Pendulum-v1 --max-iter-num 6",
            environment={"OMP_NUM_THREADS": "1"},
            data={"examples/gym.py": "old_gym/gym.py"}),
    Program("sac", "a policy's steps, an update of five losses each; ten evaluations after every tenth episode",
            "pranz24/pytorch-soft-actor-critic",
            "main.py --env-name Pendulum-v1 --cuda --num_steps 2300 --start_steps 500",
            data={"gym.py": "old_gym/gym.py"}),
    Program("planet", "a world model: 40 updates and an episode of planned steps in turn, evaluations in between",
            "Kaixhin/PlaNet",
            "main.py --env MountainCarContinuous-v0 --symbolic-env --max-episode-length 120 --seed-episodes 4"
            " --episodes 10 --collect-interval 40 --batch-size 16 --chunk-size 20 --candidates 200 --top-candidates 20"
            " --test-interval 2 --test-episodes 2 --checkpoint-interval 3 --experience-size 5000",
            data={"gym.py": "old_gym/gym.py"}),
    Program("deep-rl", "a policy's steps with an update each, 100 episodes played every 50; gradients on throughout",
            "dongminlee94/deep_rl", "run_cartpole.py --iterations 100 --eval_per_train 50 --max_step 100",
            data={"gym.py": "old_gym/gym.py"}),
    Program("mappo", "two agents, each with a policy, a buffer and two optimizers: rollouts, updates",
            "tinyzqh/light_mappo",
            "train/train.py --share_policy --n_rollout_threads 5 --episode_length 100 --num_env_steps 10000"
            " --ppo_epoch 5 --num_mini_batch 2 --log_interval 2 --save_interval 5",
            data={"gym.py": "old_gym/gym.py"}),
    Program("elegantrl-ppo", "a learner, four explorers and an evaluator in processes of their own: rollouts, updates",
            "AI4Finance-Foundation/ElegantRL", "examples/demo_A2C_PPO.py --drl 0 --env 0",
            environment={"PYTHONPATH": ".", "OMP_NUM_THREADS": "1"}, seconds=180),
    Program("elegantrl-ddpg", "a learner with a buffer on the GPU, eight explorers and an evaluator in processes",
            "AI4Finance-Foundation/ElegantRL", "examples/demo_DDPG_TD3_SAC.py --drl 3 --env 0",
            environment={"PYTHONPATH": ".", "OMP_NUM_THREADS": "1"}, seconds=180),
    # Graphs
    Program("gat", "training on one graph, validates in each step", "pytorch/examples", "main.py --epochs 300",
            folder="gat", data={"gat/cora": "cora"}),
    Program("pygcn", "training on one graph, validates in each step, test", "tkipf/pygcn", "train.py --epochs 600",
            folder="pygcn", environment={"PYTHONPATH": "."}, data={"data/cora": "cora"}),
    Program("pygat", "training on one graph, validates and saves in each step, test", "Diego999/pyGAT",
            "train.py --epochs 60", data={"data/cora": "cora"}),
    Program("pyg-gcn", "training on one graph, tests of three sets in each step", "pyg-team/pytorch_geometric",
            "gcn.py --epochs 600", folder="examples", data={"data/Planetoid/Cora/raw": "planetoid"}),
    Program("proteins", "graphs with pooling: training, evaluation of both sets", "pyg-team/pytorch_geometric",
            "proteins_topk_pool.py", folder="examples", data={"data/PROTEINS/PROTEINS/raw": "proteins"}),
    Program("gin", "batches of graphs made in each step, passes over both sets an epoch", "weihua916/powerful-gnns",
            "main.py --epochs 25", data={"dataset/MUTAG": "molecules"}),
    Program("gcnii", "training of a deep network on one graph, validates in each step and may stop early; test",
            "chennnM/GCNII", "train.py --layer 16 --epochs 400 --patience 200 --test"),
    Program("sgc", "one product with the graph, 100 steps that wait for nothing, two tests", "Tiiiger/SGC",
            "citation.py --dataset cora"),
    Program("stgcn", "a traffic forecast: a loader of tensors of the device, evaluations; test of the best",
            "hazdzz/STGCN", "main.py --epochs 8", data={"data/metr-la": "road"}),
    # Trainers
    Program("lightning-imagenet", "Lightning: sanity check, training, validation", "Lightning-AI/pytorch-lightning",
            "imagenet.py fit --model.data_path {data}/imagefolder --model.arch resnet18 --model.batch_size 32"
            " --model.workers 4 --trainer.max_epochs 2", folder="examples/pytorch/domain_templates"),
    Program("lightning-autoencoder", "Lightning: sanity check, training, validation, test, prediction",
            "Lightning-AI/pytorch-lightning",
            "autoencoder.py --trainer.max_epochs 2 --trainer.limit_train_batches 300 --trainer.limit_val_batches 50"
            " --trainer.limit_test_batches 50 --trainer.limit_predict_batches 20", folder="examples/pytorch/basics",
            data={"examples/Datasets": "mnist60k", "examples/pytorch/basics/data": "mnist60k"}),
    Program("fabric-classifier", "Fabric: training, test", "Lightning-AI/pytorch-lightning",
            "train_fabric.py --epochs 1", folder="examples/fabric/image_classifier", data={"Datasets": "mnist"}),
    Program("fabric-kfold", "Fabric: three models in turn, training and validation", "Lightning-AI/pytorch-lightning",
            "train_fabric.py --epochs 2 --folds 3", folder="examples/fabric/kfold_cv", data={"Datasets": "mnist"}),
    Program("transformers-trainer", "transformers' Trainer with evaluation and checkpoints", "huggingface/peft",
            "olora_finetuning.py --base_model {data}/tiny_llama --data_path {data}/instructions --output_dir out"
            " --num_epochs 3 --batch_size 8 --eval_step 40 --save_step 80 --val_set_size 64 --dtype float32 --seed 1",
            folder="examples/olora_finetuning", environment=HUB),
    Program("accelerate", "accelerate launch: training, evaluation", "huggingface/accelerate",
            "cv_example.py --data_dir {data}/pets", folder="examples", environment=HUB,
            launcher="-m accelerate.commands.launch --num_processes 1 --num_machines 1 --mixed_precision no"
            " --dynamo_backend no"),
    Program("skorch", "skorch and accelerate: two trainings of a cross-validation, three short epochs each",
            "skorch-dev/skorch", "run-with-skorch.py", folder="examples/accelerate-multigpu"),
    Program("trl-grpo", "a trainer of trl's: generates what it rewards, then trains on it; evaluation",
            "huggingface/trl",
            "trl/scripts/grpo.py --model_name_or_path {data}/tiny_llama --dataset_name {data}/prompts --reward_funcs"
            " rewards.words --output_dir out --max_steps 24 --per_device_train_batch_size 8 --num_generations 4"
            " --max_completion_length 24 --eval_strategy steps --eval_steps 8 --per_device_eval_batch_size 8"
            " --logging_steps 4 --report_to none --bf16 False --seed 1",
            environment={"PYTHONPATH": ".", **HUB}, data={"rewards.py": "prompts/rewards.py"}),
    Program("lightning-hydra", "Lightning by Hydra: sanity check, training, validation, test of the best checkpoint",
            "ashleve/lightning-hydra-template", "src/train.py trainer=gpu trainer.max_epochs=2 seed=1",
            data={"data": "mnist60k"}, environment={"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}),
    Program("diffusers", "accelerate launch: diffusion: training with an EMA model, pictures after each epoch",
            "huggingface/diffusers",
            "train_unconditional.py --train_data_dir {data}/pictures32 --resolution 32 --train_batch_size 16"
            " --num_epochs 3 --use_ema --ddpm_num_inference_steps 50 --save_images_epochs 1 --lr_warmup_steps 10"
            " --output_dir out", folder="examples/unconditional_image_generation",
            environment={"PYTHONPATH": "src", **HUB},
            launcher="-m accelerate.commands.launch --num_processes 1 --num_machines 1 --mixed_precision no"
            " --dynamo_backend no"),
    # Several processes
    Program("imagenet-spawn", "spawned workers, DDP: training, validation, checkpoint", "pytorch/examples",
            "main.py {data}/imagefolder -a resnet18 -b 64 -j 4 --epochs 2 --multiprocessing-distributed --world-size 1"
            " --rank 0 --dist-url tcp://127.0.0.1:{port} --seed 1", folder="imagenet"),
    Program("simsiam-spawn", "spawned workers, DDP: self-supervised training", "facebookresearch/simsiam",
            "main_simsiam.py {data}/imagefolder -a resnet18 -b 32 -j 4 --epochs 1 --multiprocessing-distributed"
            " --world-size 1 --rank 0 --dist-url tcp://127.0.0.1:{port} --seed 1"),
    Program("barlowtwins", "spawned workers, DDP: self-supervised training, an optimizer of its own",
            "facebookresearch/barlowtwins", BARLOW),
    Program("voxceleb-spawn", "spawned workers, DDP: speech, training with AMP, evaluation of one utterance at a time",
            "clovaai/voxceleb_trainer",
            "trainSpeakerNet.py --model ResNetSE34L --trainfunc amsoftmax --nClasses 40 --batch_size 16"
            " --nDataLoaderThread 4 --max_epoch 6 --test_interval 3 --train_list {data}/voices/train.txt --test_list"
            " {data}/voices/test.txt --train_path {data}/voices/wav --test_path {data}/voices/wav --distributed"
            " --mixedprec --port {port}"),
    Program("ijepa", "processes of multiprocessing, DDP of three networks: a closure for each step, timed by events",
            "facebookresearch/ijepa", "main.py --fname {data}/ijepa/config.yaml --devices cuda:0", seconds=150),
    Program("vicreg", "torchrun with one process, DDP: training that logs once a minute, a checkpoint an epoch",
            "facebookresearch/vicreg",
            "main_vicreg.py --data-dir {data}/imagefolder --arch resnet50 --mlp 512-512-512 --epochs 5 --batch-size 64"
            " --num-workers 8 --base-lr 0.02", launcher=ONE),
    Program("ten-steps-alone", "torchrun with one process, 10 steps", "pytorch/examples",
            "multigpu_torchrun.py 1 1 --batch_size 205", folder="distributed/ddp-tutorial-series",
            launcher=ONE, inside=True),
    Program("ten-steps-script", "10 steps", "pytorch/examples", "single_gpu.py 1 1 --batch_size 205",
            folder="distributed/ddp-tutorial-series"),
    Program("ten-steps", "torchrun, 10 steps", "pytorch/examples", "multigpu_torchrun.py 1 1 --batch_size 103",
            folder="distributed/ddp-tutorial-series", launcher=TWO, inside=True, gpus=2),
    Program("torchrun-inside", "syncscope runs torchrun", "pytorch/examples", "multigpu_torchrun.py 3 1 --batch_size 8",
            folder="distributed/ddp-tutorial-series", launcher=TWO, gpus=2),
    Program("ddp-spawn", "spawned workers, DDP", "pytorch/examples", "multigpu.py 3 1 --batch_size 8",
            folder="distributed/ddp-tutorial-series", gpus=2),
    Program("llms-ddp", "spawned workers, DDP: three steps", "rasbt/LLMs-from-scratch", "DDP-script.py",
            folder="appendix-A/01_main-chapter-code", gpus=2),
    Program("fsdp2", "torchrun, FSDP2: 10 steps, a checkpoint", "pytorch/examples", "example.py",
            folder="distributed/FSDP2", launcher=TWO, gpus=2),
    Program("tensor-parallel", "torchrun, tensor parallelism: 10 steps", "pytorch/examples",
            "tensor_parallel_example.py", folder="distributed/tensor_parallelism", launcher=TWO, inside=True, gpus=2),
    Program("nanogpt-ddp", "torchrun, DDP: training, evaluates at iteration 0", "karpathy/nanoGPT",
            NANO + " --compile=False", data=SHAKESPEARE, launcher=TWO, inside=True, gpus=2),
    Program("lightning-ddp", "Lightning's ddp, which starts the second process itself",
            "Lightning-AI/pytorch-lightning",
            "imagenet.py fit --model.data_path {data}/imagefolder --model.arch resnet18 --model.batch_size 64"
            " --model.workers 4 --trainer.max_epochs 2 --trainer.devices 2 --trainer.strategy ddp",
            folder="examples/pytorch/domain_templates", gpus=2),
    Program("imagenet-spawn-two", "spawned workers, DDP: a few steps, validation, checkpoint", "pytorch/examples",
            "main.py {data}/imagefolder -a resnet18 -b 64 -j 2 --epochs 1 --multiprocessing-distributed --world-size 1"
            " --rank 0 --dist-url tcp://127.0.0.1:{port} --seed 1", folder="imagenet", gpus=2, seconds=60),
    Program("barlowtwins-two", "spawned workers, DDP: self-supervised training", "facebookresearch/barlowtwins", BARLOW,
            gpus=2),
    Program("lightning-ddp-small", "Lightning's ddp, which starts the second process itself: 40 steps an epoch",
            "Lightning-AI/pytorch-lightning",
            "autoencoder.py --trainer.max_epochs 2 --trainer.limit_train_batches 40 --trainer.limit_val_batches 10"
            " --trainer.limit_test_batches 5 --trainer.limit_predict_batches 5 --trainer.devices 2"
            " --trainer.strategy ddp", folder="examples/pytorch/basics", gpus=2, seconds=60,
            data={"examples/Datasets": "mnist60k", "examples/pytorch/basics/data": "mnist60k"}),
    Program("accelerate-ddp", "accelerate launch, DDP: training, evaluation", "huggingface/accelerate",
            "cv_example.py --data_dir {data}/pets", folder="examples", environment=HUB, gpus=2,
            launcher="-m accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1"
            " --mixed_precision no --dynamo_backend no --main_process_port {port}"),
    Program("torchvision-ddp", "torchrun: training, evaluation", "chanwutk/vision_references",
            "train.py --data-path {data}/imagefolder --model resnet18 --epochs 2 -b 32 -j 4 --amp",
            folder="references/classification", launcher=TWO, inside=True, gpus=2),
)  # fmt: skip
