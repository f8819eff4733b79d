// What changes the server itself: its tokens, and its end. For admins alone; whoever holds a server in a program of their
// own decides whether there is any of it.
import type { AnswerOf, FieldsOf, OperationName } from "../../wire/Operations.ts"
import type { Administration, OperationContext } from "./Context.ts"
import { InvalidState, NotFound } from "./OperationErrors.ts"

type Handle<Name extends OperationName> = (fields: FieldsOf<Name>, context: OperationContext) => Promise<AnswerOf<Name>>

const administrationOf = ({ administration }: OperationContext): Administration => {
  if (administration === undefined) throw new InvalidState("this server is administered by the program that holds it")
  return administration
}

const create: Handle<"token.create"> = async ({ name, role }, context) => {
  const token = name === "local" ? undefined : administrationOf(context).createToken(name, role)
  if (token === undefined) throw new InvalidState(`there is a token "${name}" already`)
  return { name, role, token }
}

const remove: Handle<"token.remove"> = async ({ name }, context) => {
  if (!administrationOf(context).removeToken(name)) throw new NotFound(`there is no token "${name}"`)
  return { name }
}

const stop: Handle<"server.stop"> = async ({ reason = "asked for" }, context) => {
  administrationOf(context).stop(`${context.principal.name}: ${reason}`)
  return { stopping: true }
}

export const administrationHandlers = {
  "token.list": async (_fields: FieldsOf<"token.list">, context: OperationContext) => ({
    items: administrationOf(context).tokens()
  }),
  "token.create": create,
  "token.remove": remove,
  "server.stop": stop
} as const
