// How Claude Code is started under ECHS: hooks and telemetry are given on the command line and in the environment, so that
// no file of the user is touched. State events go through a shim that writes them to a spool on disk, where they wait while
// the server is away; only the question of a permission goes over HTTP, because an answer is awaited.
import { join } from "node:path"
import { harnessLimits } from "../HarnessLimits.ts"
import type { LaunchPlan, LaunchRequest } from "../Port.ts"

export const spoolName = "spool"
const shimName = "hook.sh"
const tokenVariable = "ECHS_HARNESS_TOKEN"

/** Hooks that say something about the state. The permission request is apart. */
export const stateHooks = [
  "SessionStart",
  "SessionEnd",
  "UserPromptSubmit",
  "PreToolUse",
  "PostToolUse",
  "PostToolUseFailure",
  "PostToolBatch",
  "MessageDisplay",
  "Stop",
  "StopFailure",
  "SubagentStart",
  "SubagentStop",
  "PreCompact",
  "PostCompact"
] as const

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/**
 * Writes its input under a name that sorts by time, whole or not at all. It prints nothing and never fails: an agent that
 * is only watched is not held up.
 */
const shim = (spool: string): string => `#!/bin/sh
umask 077
at=$(date +%s%N 2>/dev/null)
case $at in *N) at=\${at%N}000000000 ;; esac
name=$at-$$-$1
head -c ${harnessLimits.hookBytesMax} >${quoted(`${spool}/`)}.$name && mv ${quoted(`${spool}/`)}.$name ${quoted(`${spool}/`)}$name.json
exit 0
`

const settings = ({ directory, serverUrl }: LaunchRequest): unknown => {
  const command = `/bin/sh ${quoted(join(directory, shimName))}`
  const spooled = stateHooks.map((name) => [
    name,
    [{ matcher: "", hooks: [{ type: "command", command: `${command} ${name}`, timeout: 5 }] }]
  ])
  const ask = {
    type: "http",
    url: `${serverUrl}/hooks/claude`,
    timeout: Math.ceil(harnessLimits.permissionWaitMs / 1000),
    headers: { authorization: `Bearer $${tokenVariable}` },
    allowedEnvVars: [tokenVariable]
  }
  return { hooks: { ...Object.fromEntries(spooled), PermissionRequest: [{ matcher: "", hooks: [ask] }] } }
}

export const claudeLaunch = (request: LaunchRequest): LaunchPlan => {
  const { command, directory, serverUrl, token } = request
  return {
    command: command[0] ?? "claude",
    prependArgs: ["--settings", join(directory, "settings.json")],
    env: {
      [tokenVariable]: token,
      CLAUDE_CODE_ENABLE_TELEMETRY: "1",
      OTEL_LOGS_EXPORTER: "otlp",
      OTEL_METRICS_EXPORTER: "none",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_ENDPOINT: serverUrl,
      OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer ${token}`,
      OTEL_LOGS_EXPORT_INTERVAL: "1000"
    },
    files: [
      { name: "settings.json", text: `${JSON.stringify(settings(request), null, 2)}\n` },
      { name: shimName, text: shim(join(directory, spoolName)), executable: true }
    ]
  }
}
