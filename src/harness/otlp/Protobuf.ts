// As much of the protobuf wire format as telemetry needs: fields of a message, with lengths that must lie inside it.
export interface Field {
  readonly number: number
  /** A length-delimited field. */
  readonly bytes?: Uint8Array
  /** A varint or a fixed-width field. */
  readonly value?: bigint
  readonly double?: number
}

export class ProtobufInvalid extends Error {
  override readonly name = "ProtobufInvalid"
}

interface Cursor {
  readonly view: DataView
  at: number
}

const varint = (cursor: Cursor): bigint => {
  let value = 0n
  for (let shift = 0n; shift < 70n; shift += 7n) {
    if (cursor.at >= cursor.view.byteLength) throw new ProtobufInvalid("a number is cut off")
    const byte = cursor.view.getUint8(cursor.at)
    cursor.at += 1
    value |= BigInt(byte & 0x7f) << shift
    if (byte < 0x80) return BigInt.asUintN(64, value)
  }
  throw new ProtobufInvalid("a number has too many bytes")
}

const take = (cursor: Cursor, length: number): number => {
  const start = cursor.at
  if (length > cursor.view.byteLength - start) throw new ProtobufInvalid("a field is longer than its message")
  cursor.at += length
  return start
}

const fieldOf = (cursor: Cursor, bytes: Uint8Array): Field => {
  const tag = varint(cursor)
  const number = Number(tag >> 3n)
  switch (Number(tag & 7n)) {
    case 0:
      return { number, value: varint(cursor) }
    case 1: {
      const start = take(cursor, 8)
      const { view } = cursor
      return { number, value: view.getBigUint64(start, true), double: view.getFloat64(start, true) }
    }
    case 2: {
      const length = Number(varint(cursor))
      const start = take(cursor, length)
      return { number, bytes: bytes.subarray(start, start + length) }
    }
    case 5:
      return { number, value: BigInt(cursor.view.getUint32(take(cursor, 4), true)) }
    default:
      throw new ProtobufInvalid("a field has an unknown type")
  }
}

export const fieldsOf = (bytes: Uint8Array): ReadonlyArray<Field> => {
  const cursor = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), at: 0 }
  const fields: Array<Field> = []
  while (cursor.at < bytes.length) fields.push(fieldOf(cursor, bytes))
  return fields
}

export const messagesIn = (fields: ReadonlyArray<Field>, number: number): ReadonlyArray<Uint8Array> =>
  fields.flatMap((field) => (field.number === number && field.bytes !== undefined ? [field.bytes] : []))
