// What readers of a conversation see of the log: pages of frames whose bodies are the runes as they go over the wire.
export * from "../store/runes/Frames.ts"
