import { z } from 'zod';
import { camelCase, type CamelCase } from '../domain/text.ts';
import { formatDatetime } from '../domain/time.ts';

type IsOptional<Type> = Type extends z.ZodOptional ? true : false;

/** The value inside the program of a shape: names in camelCase, instants as epoch ms. */
export type ProgramValue<Shape> = Shape extends z.ZodISODateTime
  ? number
  : Shape extends z.ZodNullable<infer Inner>
    ? ProgramValue<Inner> | null
    : Shape extends z.ZodOptional<infer Inner>
      ? ProgramValue<Inner> | undefined
      : Shape extends z.ZodReadonly<infer Inner>
        ? ProgramValue<Inner>
        : Shape extends z.ZodArray<infer Item>
          ? readonly ProgramValue<Item>[]
          : Shape extends z.ZodObject<infer Members>
            ? ProgramMembers<Members>
            : z.output<Shape>;

type ProgramMembers<Members> = {
  [
    Name in keyof Members as IsOptional<Members[Name]> extends true ? never : CamelCase<Name & string>
  ]: ProgramValue<Members[Name]>;
} & {
  [
    Name in keyof Members as IsOptional<Members[Name]> extends true ? CamelCase<Name & string> : never
  ]?: ProgramValue<Members[Name]>;
};

/**
 * Makes the function that writes a value in its shape, with the members in the order of the shape. What is undefined, or
 * not in the shape, is left out. Nothing is validated.
 */
export function serializerOf<Shape extends z.ZodType>(
  shape: Shape,
): (value: ProgramValue<Shape>) => z.output<Shape> {
  // The types of the members are those of `ProgramValue`; the compiler cannot follow this through the recursion.
  type Write = (value: ProgramValue<Shape>) => z.output<Shape>;
  let write: Write | null = null;
  // Made at the first value: a process writes few of all shapes.
  return (value) => (write ??= serializer(shape) as Write)(value);
}

function serializer(shape: z.core.$ZodType): (value: never) => unknown {
  if (shape instanceof z.ZodISODateTime) return formatDatetime;
  if (shape instanceof z.ZodNullable || shape instanceof z.ZodOptional || shape instanceof z.ZodReadonly) {
    const write = serializer(shape.unwrap());
    return (value) => (value === null || value === undefined ? value : write(value));
  }
  if (shape instanceof z.ZodArray) {
    const write = serializer(shape.element);
    return (items: readonly never[]) => items.map((item) => write(item));
  }
  if (!(shape instanceof z.ZodObject)) return (value) => value;
  const members = Object.entries<z.core.$ZodType>(shape.shape).map(([name, type]) => {
    return { name, key: camelCase(name), write: serializer(type) };
  });
  return (value: Readonly<Record<string, never>>) => {
    const written: Record<string, unknown> = {};
    for (const { name, key, write } of members) {
      const member = value[key];
      if (member !== undefined) written[name] = write(member);
    }
    return written;
  };
}
