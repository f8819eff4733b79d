// A channel with one listener, for a test that wants to hear what is told.
import { Channel } from "#src/contract/Channel.ts"

export const channelTo = <A extends ReadonlyArray<unknown>>(hear: (...told: A) => void): Channel<A> => {
  const channel = new Channel<A>((_listener, error) => {
    throw error
  })
  channel.add("test", hear)
  return channel
}
