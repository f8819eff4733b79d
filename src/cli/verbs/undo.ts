// `echs undo`: brings back the files that a turn changed, goes back to before it in the conversation, or both.
import type { Client } from "../../client/Client.ts"
import { showRows } from "../Pages.ts"
import { findConversation, makeRemoteVerb, type RemoteParts } from "../Remote.ts"
import { undoneText, undoRows } from "../render/UndoText.ts"
import { exitCode, type Terminal, type Verb } from "../Verb.ts"
import { oneOf, UsageError } from "../VerbSpec.ts"

type Which = { readonly turn_id: string } | { readonly checkpoint_id: string } | Record<never, never>

/** A turn by its number, a checkpoint by its name. */
export const whichOf = (text: string | undefined): Which => {
  if (text === undefined || text === "") return {}
  const [, turn, checkpoint] = /^(?:turn_)?([1-9]\d{0,14})$|^(chk_[1-9]\d{0,14})$/.exec(text) ?? []
  if (turn !== undefined) return { turn_id: `turn_${turn}` }
  if (checkpoint !== undefined) return { checkpoint_id: checkpoint }
  throw new UsageError(`"${text}" is no turn and no checkpoint; use a number such as 3, or chk_7`)
}

const listed = async (client: Client, id: string, terminal: Terminal) => {
  const { items } = await client.call("checkpoint.list", { conversation_id: id })
  const rows = items.map(
    ({ checkpoint_id: name, made_ms: made, reason, turn_id: turn }) =>
      `${name.padEnd(8)} ${(turn ?? "").padEnd(9)} ${new Date(made).toISOString()}  ${terminal.paint("quiet", `before a ${reason}`)}`
  )
  return { items, text: rows.length === 0 ? "no checkpoints yet\n" : `${rows.join("\n")}\n` }
}

const isConfirmed = async (rows: ReadonlyArray<string>, terminal: Terminal): Promise<boolean> => {
  const signal = terminal.interruption()
  if ((await showRows(rows, terminal, signal)) === "stopped") return false
  return /^y(es)?$/i.test((await terminal.ask("  go back? [y]es, [n]o ", signal))?.trim() ?? "")
}

export const make = (parts: RemoteParts): Verb =>
  makeRemoteVerb(parts, {
    name: "undo",
    takes: "[TURN|CHECKPOINT]",
    positionals: { min: 0, max: 1 },
    options: {
      in: { type: "string", value: "CONVERSATION", help: "the conversation; default: the last one of this directory" },
      what: { type: "string", value: "WHAT", help: "files (default), conversation or both" },
      list: { type: "boolean", help: "list the checkpoints" },
      preview: { type: "boolean", help: "only show what would change" },
      yes: { type: "boolean", help: "do it without asking" }
    },
    example: "echs undo 3 --what both",
    notes: [
      "Without TURN, the last turn after which files differ is undone.",
      "What is overwritten becomes a checkpoint first: `echs undo chk_N` brings it back.",
      "`--what conversation` and `both` copy the conversation up to the turn; the original stays."
    ],
    run: async ({ answer, client, positionals: [named], terminal, values }) => {
      const what = oneOf("what", values.what, ["files", "conversation", "both"]) ?? "files"
      const id = await findConversation(client, values.in ?? "last", parts.workingDirectory())
      if (values.list === true) {
        const { items, text } = await listed(client, id, terminal)
        answer({ conversation_id: id, items }, () => text)
        return exitCode.done
      }
      const preview = await client.call("checkpoint.preview", { conversation_id: id, ...whichOf(named) })
      const rows = undoRows(preview, terminal, { patchLinesMax: 2_000 })
      const isNothing = preview.files_total === 0 && what === "files"
      if (values.preview === true || isNothing) {
        answer({ conversation_id: id, ...preview }, () => `${rows.join("\n")}\n`)
        return exitCode.done
      }
      if (values.yes !== true && (!terminal.isAnswered || values.json === true))
        throw new UsageError("nobody can be asked here; add --yes, or --preview to look first")
      if (values.yes !== true && !(await isConfirmed(rows, terminal))) {
        terminal.complain("nothing was changed\n")
        return exitCode.interrupted
      }
      const { checkpoint, tree } = preview
      const seen = { checkpoint_id: checkpoint.checkpoint_id, tree, what }
      const done = await client.call("checkpoint.restore", { conversation_id: id, ...seen })
      answer({ from: id, ...done }, () => `${undoneText(done)}\n`)
      return exitCode.done
    }
  })
