// Charts of the overview, as plain SVG: bars by day, shares by name. Loaded with the overview, so that the first load stays
// small; every bar says its value to who cannot see it.
import { money, shortNumber } from "../state/Format.ts"
import { safeText } from "../state/Safe.ts"

export interface Share {
  readonly input_tokens: number
  readonly output_tokens: number
  readonly usd: number
  readonly runes: number
}

export interface Day extends Share {
  readonly day_ms: number
}

const dayMs = 86_400_000
const size = { width: 1120, height: 160, bottom: 20, top: 18, gap: 4 } as const

const tokensOf = (share: Share): number => share.input_tokens + share.output_tokens

/** Money where anything has a price, tokens where nothing has. */
const measureOf = (shares: ReadonlyArray<Share>): ((share: Share) => number) =>
  shares.some(({ usd }) => usd > 0) ? ({ usd }) => usd : tokensOf

const valueText = (share: Share, isMoney: boolean): string =>
  isMoney ? money(share.usd) : `${shortNumber(tokensOf(share))} tok`

/** Every day of the window, also those on which nothing happened. */
const filled = (days: ReadonlyArray<Day>, count: number): ReadonlyArray<Day> => {
  const byDay = new Map(days.map((day) => [day.day_ms, day]))
  const last = Math.floor(Date.now() / dayMs) * dayMs
  return Array.from({ length: count }, (_, at) => {
    const day_ms = last - (count - 1 - at) * dayMs
    return byDay.get(day_ms) ?? { day_ms, input_tokens: 0, output_tokens: 0, usd: 0, runes: 0 }
  })
}

const dayName = (ms: number): string =>
  new Date(ms).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" })

export const DayBars = ({ count, days }: { readonly days: ReadonlyArray<Day>; readonly count: number }) => {
  const all = filled(days, count)
  const measure = measureOf(all)
  const isMoney = all.some(({ usd }) => usd > 0)
  const most = Math.max(...all.map(measure), 1e-9)
  const step = size.width / count
  const room = size.height - size.bottom - size.top
  return (
    <svg class="day-bars" viewBox={`0 0 ${size.width} ${size.height}`} role="img" aria-label="Cost by day">
      <line class="axis" x1="0" x2={size.width} y1={size.height - size.bottom} y2={size.height - size.bottom} />
      {all.map((day, at) => {
        const height = (measure(day) / most) * room
        const x = at * step + size.gap / 2
        const isLabeled = (count - 1 - at) % 3 === 0
        return (
          <g key={day.day_ms}>
            <rect x={x} width={step - size.gap} y={size.height - size.bottom - height} height={height} rx="2">
              <title>{`${dayName(day.day_ms)}: ${valueText(day, isMoney)}, ${shortNumber(day.runes)} runes`}</title>
            </rect>
            {measure(day) === most && measure(day) > 0 ? (
              <text x={x + step / 2} y={size.height - size.bottom - height - 6} text-anchor="middle">
                {valueText(day, isMoney)}
              </text>
            ) : null}
            {isLabeled ? (
              <text class="tick" x={x + step / 2 - size.gap / 2} y={size.height - 4} text-anchor="middle">
                {dayName(day.day_ms)}
              </text>
            ) : null}
          </g>
        )
      })}
    </svg>
  )
}

export const ShareBars = ({
  items
}: {
  readonly items: ReadonlyArray<{ readonly name: string; readonly share: Share; readonly href?: string }>
}) => {
  const shares = items.map(({ share }) => share)
  const measure = measureOf(shares)
  const isMoney = shares.some(({ usd }) => usd > 0)
  const most = Math.max(...shares.map(measure), 1e-9)
  return items.length === 0 ? (
    <p class="quiet">Nothing yet.</p>
  ) : (
    <ul class="stack tight">
      {items.map(({ href, name, share }) => (
        <li key={name} class="bar-row">
          {href === undefined ? (
            <span class="cut" title={name}>
              {safeText(name)}
            </span>
          ) : (
            <a class="cut" href={href} title={name}>
              {safeText(name)}
            </a>
          )}
          <span class="bar-track" aria-hidden="true">
            <span style={{ width: `${(measure(share) / most) * 100}%` }} />
          </span>
          <span class="quiet small number">{valueText(share, isMoney)}</span>
        </li>
      ))}
    </ul>
  )
}
