import type { Example } from '../../wire/examples.ts';

/** JSON Schema, as far as it is changed here. */
type Schema = {
  type?: string | readonly string[];
  format?: string;
  pattern?: string;
  minLength?: number;
  minimum?: number;
  maximum?: number;
  readOnly?: boolean;
  enum?: readonly unknown[];
  anyOf?: readonly Schema[];
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
};

type Named = Readonly<Record<string, unknown>>;

/** A parameter of a path, a query or a header. */
export type Parameter = { name: string; in: string; required?: boolean; schema: Schema };

/** Stands behind the name of a body for the same as a form. */
export const formSuffix = 'Form';

/** Tells in JSON Schema what zod tells otherwise, or at more length than people read; `names` are those of bodies. */
export function describeSchemas(
  schemas: Named,
  names: { json: ReadonlySet<string>; form: ReadonlySet<string> },
): Named {
  const described: Record<string, Schema> = {};
  for (const [name, schema] of Object.entries(schemas)) {
    const told = everywhere(schema, tell) as Schema;
    // In a body of JSON, null is the same as not sent (src/http/README.md, Bodies and responses).
    described[name] = names.json.has(name) ? withOptional(told, nullable) : told;
    const form = `${name}${formSuffix}`;
    if (names.form.has(form)) described[form] = withOptional(told, possiblyEmpty);
  }
  return described;
}

/** Tells that a parameter of a query which may be left out may also be sent empty. */
export function describeParameter(parameter: Parameter): Parameter {
  // An id that this program could not hold is not found, as any other that nothing has.
  if (parameter.in === 'path') return { ...parameter, schema: tell(parameter.schema) };
  if (parameter.in !== 'query' || parameter.required === true) return parameter;
  return { ...parameter, allowEmptyValue: true, schema: possiblyEmpty(parameter.schema) } as Parameter;
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

function withOptional(schema: Schema, change: (member: Schema) => Schema): Schema {
  const { properties, required = [] } = schema;
  if (properties === undefined) return schema;
  const told = Object.entries(properties).map(([name, its]) => [
    name,
    required.includes(name) ? its : change(its),
  ]);
  return { ...schema, properties: Object.fromEntries(told) as Record<string, Schema> };
}

/** A text in a form or a query may be empty, which is the same as not sent. */
function possiblyEmpty(schema: Schema): Schema {
  if (schema.type !== 'string' || schema.pattern !== undefined) return schema;
  const { minLength: _, ...rest } = schema;
  return rest;
}

function nullable(schema: Schema): Schema {
  const { type, enum: words } = schema;
  if (type === undefined) return schema;
  const types = [type].flat();
  if (types.includes('null')) return schema;
  return { ...schema, type: [...types, 'null'], ...(words !== undefined && { enum: [...words, null] }) };
}

type Content = Readonly<Record<string, { schema: object; example?: unknown }>>;

/** An operation of a finished document, as far as it is changed here. */
export type Operation = {
  operationId: string;
  parameters?: readonly Parameter[];
  requestBody?: { content: Content };
  responses: Readonly<Record<string, { content?: Content }>>;
};

/** Tells of an operation what may be sent empty, and an example. */
export function describeOperation(operation: Operation, example: Example | undefined): Operation {
  const { parameters = [], requestBody, responses } = operation;
  const { path = {}, query = {}, body, status = 0, answer } = example ?? {};
  const sent = { ...path, ...query };
  const answered = responses[status];
  return {
    ...operation,
    parameters: parameters.map((parameter) => ({
      ...describeParameter(parameter),
      ...(parameter.name in sent && { example: sent[parameter.name] }),
    })),
    ...(requestBody !== undefined && {
      requestBody: { ...requestBody, content: withExample(requestBody.content, body) },
    }),
    ...(answered?.content !== undefined && {
      responses: { ...responses, [status]: { ...answered, content: withExample(answered.content, answer) } },
    }),
  };
}

function withExample(content: Content, example: unknown): Content {
  if (example === undefined) return content;
  const media = Object.entries(content).map(([type, its]) => [
    type,
    type === 'text/csv' ? its : { ...its, example },
  ]);
  return Object.fromEntries(media) as Content;
}
