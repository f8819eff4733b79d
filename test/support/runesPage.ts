// The page docs/RUNES.md, made of what every kind says about itself.
import { definitions } from "#src/rune/Kinds.ts"

const row = ({ kind, meaning, runeClass, views, visibility }: (typeof definitions)[number]): string =>
  `| \`${kind}\` | ${meaning} | ${visibility} | ${runeClass} | ${views.join(", ")} |`

export const runesPage = (): string =>
  [
    "# Kinds of runes",
    "",
    "Every kind that this version writes, from `src/rune/kinds/`. `npm run schemas` writes this page; the payloads are in",
    "`schemas/rune/`. The class says how storage treats a rune: a `delta` is dropped once a later rune repeats it,",
    "`superseding` repeats deltas, `terminal` ends something and may use the reserve of a full disk. The views are what is",
    "derived from the kind: rows of listings (`catalog`), the two event streams, and traces.",
    "",
    "| kind | meaning | visible to | class | views |",
    "|---|---|---|---|---|",
    ...definitions.map(row),
    ""
  ].join("\n")
