import type { Example } from '../../wire/examples.ts';

/** JSON Schema: the part that is changed here. */
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

/** The suffix of the schema of a form. */
export const formSuffix = 'Form';

/** Simplifies the JSON Schema of zod, and makes optional members of bodies nullable; `names` are the schemas of bodies. */
export function describeSchemas(
  schemas: Named,
  names: { json: ReadonlySet<string>; form: ReadonlySet<string> },
): Named {
  const described: Record<string, Schema> = {};
  for (const [name, schema] of Object.entries(schemas)) {
    const simplified = everywhere(schema, simplify) as Schema;
    // In a JSON body, null means not sent (src/http/README.md, Bodies and responses).
    described[name] = names.json.has(name) ? withOptional(simplified, nullable) : simplified;
    const form = `${name}${formSuffix}`;
    if (names.form.has(form)) described[form] = withOptional(withoutLists(simplified), possiblyEmpty);
  }
  return described;
}

/** A form carries no lists. */
function withoutLists(schema: Schema): Schema {
  const { properties } = schema;
  if (properties === undefined) return schema;
  const texts = Object.entries(properties).filter(([, { type }]) => type !== 'array');
  return { ...schema, properties: Object.fromEntries(texts) };
}

/** An optional parameter of a query may also be sent empty. */
export function describeParameter(parameter: Parameter): Parameter {
  // An id beyond the range of safe integers is not an error: it is not found.
  if (parameter.in === 'path') return { ...parameter, schema: simplify(parameter.schema) };
  if (parameter.in !== 'query' || parameter.required === true) return parameter;
  return { ...parameter, allowEmptyValue: true, schema: possiblyEmpty(parameter.schema) } as Parameter;
}

/** The names of all schemas that a part of a document references, directly or indirectly. */
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

function simplify(schema: Schema): Schema {
  const { anyOf: [plain, ...others] = [], ...rest } = schema;
  // More generators understand two types than `anyOf`.
  if (plain?.type !== undefined && others.every(({ type }) => type === 'null')) {
    return { ...rest, ...nullable(plain) };
  }
  const simplified = { ...schema };
  // `readonly()` only says that this program does not change a list.
  delete simplified.readOnly;
  if (simplified.format === 'date-time') delete simplified.pattern;
  if (simplified.minimum === Number.MIN_SAFE_INTEGER) {
    delete simplified.minimum;
    delete simplified.maximum;
  }
  return simplified;
}

function withOptional(schema: Schema, change: (member: Schema) => Schema): Schema {
  const { properties, required = [] } = schema;
  if (properties === undefined) return schema;
  const simplified = Object.entries(properties).map(([name, its]) => [
    name,
    required.includes(name) ? its : change(its),
  ]);
  return { ...schema, properties: Object.fromEntries(simplified) as Record<string, Schema> };
}

/** An empty text in a form or a query means not sent. */
function possiblyEmpty(schema: Schema): Schema {
  if (schema.type !== 'string' || schema.pattern !== undefined) return schema;
  const { minLength: _, ...rest } = schema;
  return rest;
}

function nullable(schema: Schema): Schema {
  if (schema.anyOf !== undefined) return { ...schema, anyOf: [...schema.anyOf, { type: 'null' }] };
  const { type, enum: words } = schema;
  if (type === undefined) return schema;
  const types = [type].flat();
  if (types.includes('null')) return schema;
  return { ...schema, type: [...types, 'null'], ...(words !== undefined && { enum: [...words, null] }) };
}

type Content = Readonly<Record<string, { schema: object; example?: unknown }>>;

/** An operation of a complete document: the part that is changed here. */
export type Operation = {
  operationId: string;
  parameters?: readonly Parameter[];
  requestBody?: { content: Content };
  responses: Readonly<Record<string, { content?: Content }>>;
};

/** Adds to an operation which parameters may be sent empty, and an example. */
export function describeOperation(operation: Operation, example: Example | undefined): Operation {
  const { parameters = [], requestBody, responses } = operation;
  const { path = {}, query = {}, body, status = 0, response } = example ?? {};
  const sent = { ...path, ...query };
  const success = responses[status];
  return {
    ...operation,
    parameters: parameters.map((parameter) => ({
      ...describeParameter(parameter),
      ...(parameter.name in sent && { example: sent[parameter.name] }),
    })),
    ...(requestBody !== undefined && {
      requestBody: { ...requestBody, content: withExample(requestBody.content, body) },
    }),
    ...(success?.content !== undefined && {
      responses: {
        ...responses,
        [status]: { ...success, content: withExample(success.content, response) },
      },
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
