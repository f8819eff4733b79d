// What work costs in processor time, for promises about growth: a machine that is busy with something else changes how
// long work takes, and hardly what it costs. Compared are two sizes in one run, never a figure with a number of seconds.

const spentMicros = (): number => {
  const { system, user } = process.threadCpuUsage?.() ?? process.cpuUsage()
  return user + system
}

/** The least of some rounds: what the work costs, not what collecting the garbage of others did. */
export const costMicros = (work: () => void, rounds = 3): number => {
  const costs = Array.from({ length: rounds }, () => {
    const before = spentMicros()
    work()
    return spentMicros() - before
  })
  return Math.min(...costs)
}

/** What is too small to be measured counts as this much. */
const floorMicros = 1_000

/** How much more twice the size costs: 2 for work in proportion, 4 for quadratic work. The least of some tries: noise adds
 *  to one of two measurements, and quadratic work is quadratic in every try. */
export const growth = (work: (size: number) => void, size: number): number => {
  work(size)
  const tries = Array.from({ length: 3 }, () => {
    const [once, twice] = [costMicros(() => work(size)), costMicros(() => work(2 * size))]
    return (twice + floorMicros) / (once + floorMicros)
  })
  return Math.min(...tries)
}
