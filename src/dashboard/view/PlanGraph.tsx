// The plan as a graph: tasks in columns by dependence, each with its state as shape, color and word.
import { visible } from "../../present/VisibleText.ts"
import { type PlanTask, taskTones } from "../state/PlanLabels.ts"
import { layoutPlan, type PlacedTask } from "../state/PlanLayout.ts"
import { Chip } from "./Bits.tsx"

const size = { width: 168, height: 64, gapX: 40, gapY: 12 } as const

const left = ({ column }: PlacedTask): number => column * (size.width + size.gapX)
const topOf = ({ row }: PlacedTask): number => row * (size.height + size.gapY)

const edgePath = (from: PlacedTask, to: PlacedTask): string => {
  const [x1, y1] = [left(from) + size.width, topOf(from) + size.height / 2]
  const [x2, y2] = [left(to), topOf(to) + size.height / 2]
  const middle = (x1 + x2) / 2
  return `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`
}

export const PlanGraph = ({ tasks }: { readonly tasks: ReadonlyArray<PlanTask> }) => {
  const { columns, edges, rows, tasks: placed } = layoutPlan(tasks)
  const width = columns * (size.width + size.gapX) - size.gapX
  const height = rows * (size.height + size.gapY) - size.gapY
  if (placed.length === 0) return null
  return (
    // Wide plans are scrolled sideways, with the keyboard too.
    <section class="plan-graph" aria-label="Plan as a graph" tabIndex={0}>
      <div class="plan-canvas" style={{ width: `${width}px`, height: `${height}px` }}>
        <svg width={width} height={height} aria-hidden="true">
          {edges.map(({ from, to }) => (
            <path
              key={`${from.item.task.task_id} ${to.item.task.task_id}`}
              class={from.item.status === "completed" ? "edge met" : "edge"}
              d={edgePath(from, to)}
            />
          ))}
        </svg>
        {placed.map((one) => (
          <div
            key={one.item.task.task_id}
            class={`task ${taskTones[one.item.status]}`}
            style={{
              left: `${left(one)}px`,
              top: `${topOf(one)}px`,
              width: `${size.width}px`,
              height: `${size.height}px`
            }}
            title={visible(one.item.task.title)}
          >
            <span class="cut">{visible(one.item.task.title)}</span>
            <Chip tone={taskTones[one.item.status]} word={one.item.status} />
          </div>
        ))}
      </div>
    </section>
  )
}
