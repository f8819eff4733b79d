// Power cuts on a real file system: ext4 in a file that lies on btrfs, where a reflink copy of that file is a picture of
// the whole disk at one moment, the way a power cut would leave it. A writer works on the ext4; pictures are taken at
// drawn moments; then each is mounted, recovered and compared with what had been acknowledged before it was taken.
// Runs in a mount namespace of its own. Says one JSON line per picture.
import { execFileSync } from "node:child_process"
import { mkdirSync, rmSync, truncateSync, writeFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { Runelog } from "#runelog/Runelog.ts"
import { MIB } from "#runelog/RunelogLimits.ts"
import { randomFrom } from "../seed.ts"
import { ChildLines } from "./ChildLines.ts"
import { Witness } from "./Witness.ts"
import { writerLimits } from "./writerLimits.ts"

interface Picture {
  readonly image: string
  /** What had been said when it was taken. */
  readonly lines: ReadonlyArray<string>
}

const run = (program: string, ...args: ReadonlyArray<string>): void =>
  void execFileSync(program, args, { stdio: ["ignore", "ignore", "pipe"] })

const makeImage = (path: string, bytes: number, ...makeFileSystem: ReadonlyArray<string>): void => {
  writeFileSync(path, "")
  truncateSync(path, bytes)
  run(makeFileSystem[0]!, ...makeFileSystem.slice(1), path)
}

const mountImage = (image: string, at: string): void => {
  mkdirSync(at, { recursive: true })
  run("mount", "-o", "loop", image, at)
}

const takePictures = async (
  host: string,
  count: number,
  options: { readonly flaw: string; readonly chance: () => number }
): Promise<ReadonlyArray<Picture>> => {
  const image = join(host, "disk.img")
  const disk = `${host}.disk`
  makeImage(image, 48 * MIB, "mkfs.ext4", "-q")
  mountImage(image, disk)
  const writer = new ChildLines("writerChild.ts", [join(disk, "data"), options.flaw])
  const pictures: Array<Picture> = []
  await writer.heard(1)
  writer.say("go 1")
  for (let index = 0; index < count; index++) {
    await writer.heard(writer.lines.length + 1 + Math.floor(options.chance() * 40))
    await sleep(options.chance() * 20)
    const lines = [...writer.lines]
    const copy = join(host, `picture-${index}.img`)
    run("cp", "--reflink=always", image, copy)
    pictures.push({ image: copy, lines })
  }
  await writer.kill()
  if (writer.errors !== "") throw new Error(`the writer failed: ${writer.errors}`)
  run("umount", disk)
  return pictures
}

/** Recovers what the picture shows; resolves with the number of events found. */
const develop = async ({ image, lines }: Picture, at: string): Promise<number> => {
  mountImage(image, at)
  try {
    const witness = new Witness()
    for (const line of lines) witness.hear(line)
    const runelog = await Runelog.open({ directory: join(at, "data"), limits: writerLimits })
    try {
      return await witness.check(runelog)
    } finally {
      await runelog.close()
    }
  } finally {
    run("umount", at)
    // What the recovery of ext4 and of the log wrote makes the copies drift apart.
    rmSync(image)
  }
}

const [scratch, count, flaw, seed] = process.argv.slice(2)
if (scratch !== undefined) {
  const host = join(scratch, "host")
  makeImage(`${host}.img`, 2048 * MIB, "mkfs.btrfs", "-q")
  mountImage(`${host}.img`, host)
  const pictures = await takePictures(host, Number(count), { flaw: flaw!, chance: randomFrom(Number(seed)) })
  for (const picture of pictures) {
    const acknowledged = picture.lines.filter((line) => line.startsWith("ack")).length
    const outcome = await develop(picture, join(scratch, "picture")).then(
      (events) => ({ events }),
      (error: unknown) => ({ error: String(error) })
    )
    writeSync(1, `${JSON.stringify({ acknowledged, ...outcome })}\n`)
  }
  run("umount", host)
}
