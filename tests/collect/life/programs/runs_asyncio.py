import asyncio

import training


async def main():
    training.train(8)
    await asyncio.sleep(0)
    await asyncio.to_thread(training.train, 2)
    training.train(8)
    print(await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2)))


asyncio.run(main())
