// The page docs/RUNES.md, made of what every kind says about itself.
import { definitions } from "#src/rune/Kinds.ts"

const row = ({ kind, meaning, runeClass, views, visibility }: (typeof definitions)[number]): string =>
  `| \`${kind}\` | ${meaning} | ${visibility} | ${runeClass} | ${views.join(", ")} |`

export const runesPage = (): string =>
  [
    "# Rune kinds",
    "",
    "Every kind that this version writes, from `src/rune/kinds/`. `npm run schemas` generates this page; the payload schemas",
    "are in `schemas/rune/`. The class defines how a rune is stored: a `delta` is dropped once a later rune repeats its",
    "content, `superseding` repeats deltas, `terminal` ends something and may use the reserved space of a full disk. The",
    "views are derived from the kind: rows of listings (`catalog`), the two event streams, and traces.",
    "",
    "| kind | meaning | visible to | class | views |",
    "|---|---|---|---|---|",
    ...definitions.map(row),
    ""
  ].join("\n")
