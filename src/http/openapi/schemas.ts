/** JSON Schema, as far as it is changed here. */
type Schema = {
  type?: string | readonly string[];
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  readOnly?: boolean;
  enum?: readonly unknown[];
  anyOf?: readonly Schema[];
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
};

type Named = Readonly<Record<string, unknown>>;

/** Tells in JSON Schema what zod tells otherwise, or at more length than people read; `bodies` are those of requests. */
export function describeSchemas(schemas: Named, bodies: ReadonlySet<string>): Named {
  return Object.fromEntries(
    Object.entries(schemas).map(([name, schema]) => {
      const told = everywhere(schema, tell) as Schema;
      return [name, bodies.has(name) ? withNull(told) : told];
    }),
  );
}

/** The names of the schemas that a part of a document is made of, through all that it names. */
export function namesWithin(part: unknown, schemas: Named, found: Set<string> = new Set()): Set<string> {
  if (typeof part !== 'object' || part === null) return found;
  const name = '$ref' in part ? /^#\/components\/schemas\/(.+)$/.exec(String(part.$ref))?.[1] : undefined;
  if (name !== undefined && !found.has(name)) namesWithin(schemas[name], schemas, found.add(name));
  for (const child of Object.values(part)) namesWithin(child, schemas, found);
  return found;
}

function everywhere(node: unknown, change: (node: Schema) => Schema): unknown {
  if (Array.isArray(node)) return node.map((item) => everywhere(item, change));
  if (typeof node !== 'object' || node === null) return node;
  const children = Object.entries(node).map(([name, child]) => [name, everywhere(child, change)]);
  return change(Object.fromEntries(children) as Schema);
}

function tell(schema: Schema): Schema {
  const { anyOf: [plain, ...others] = [], ...rest } = schema;
  // The two types in place of `anyOf` are read by more generators.
  if (plain?.type !== undefined && others.every(({ type }) => type === 'null')) {
    return { ...rest, ...nullable(plain) };
  }
  const told = { ...schema };
  // What only says that a list is not changed within this program.
  delete told.readOnly;
  if (told.format === 'date-time') delete told.pattern;
  if (told.minimum === Number.MIN_SAFE_INTEGER) {
    delete told.minimum;
    delete told.maximum;
  }
  return told;
}

/** In a body of JSON, null is the same as not sent (src/http/README.md, Bodies and answers). */
function withNull(schema: Schema): Schema {
  const { properties = {}, required = [] } = schema;
  const told = Object.entries(properties).map(([name, its]) => [
    name,
    required.includes(name) ? its : nullable(its),
  ]);
  return { ...schema, properties: Object.fromEntries(told) as Record<string, Schema> };
}

function nullable(schema: Schema): Schema {
  const { type, enum: words } = schema;
  if (type === undefined) return schema;
  const types = [type].flat();
  if (types.includes('null')) return schema;
  return { ...schema, type: [...types, 'null'], ...(words !== undefined && { enum: [...words, null] }) };
}
