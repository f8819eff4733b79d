// Opens an address in the browser of whoever sits at this machine.
import { spawn } from "node:child_process"

const programs: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...ReadonlyArray<string>]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
  linux: ["xdg-open"]
}

const hasScreen = (variables: Readonly<Record<string, string | undefined>>): boolean =>
  process.platform !== "linux" || Boolean(variables["DISPLAY"] || variables["WAYLAND_DISPLAY"])

/** False where there is no screen, or no program that opens addresses. */
export const openBrowser = (url: string, variables: Readonly<Record<string, string | undefined>>): Promise<boolean> => {
  const [program, ...args] = programs[process.platform] ?? []
  if (program === undefined || !hasScreen(variables)) return Promise.resolve(false)
  return new Promise((resolve) => {
    const child = spawn(program, [...args, url], { stdio: "ignore", detached: true })
    child.once("error", () => resolve(false))
    child.once("spawn", () => {
      child.unref()
      resolve(true)
    })
  })
}
