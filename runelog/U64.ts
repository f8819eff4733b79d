// Numbers of 64 bits as the format has them: little-endian, unsigned, never above 2⁵³−1, so that a number holds them.

const TWO_32 = 2 ** 32

export const setU64 = (view: DataView, position: number, value: number): void => {
  view.setUint32(position, value % TWO_32, true)
  view.setUint32(position + 4, Math.floor(value / TWO_32), true)
}

export const getU64 = (view: DataView, position: number): number =>
  view.getUint32(position, true) + view.getUint32(position + 4, true) * TWO_32
