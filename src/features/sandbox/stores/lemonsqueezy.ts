import {
  type SoldKey,
  StandIn,
  type StandInAnswer,
  type StandInCall,
  type StandInPage,
  textOf,
} from './stand-in.ts';

/*
 * A stand-in for Lemon Squeezy's license API and its list of instances. It follows the documents of Lemon Squeezy
 * (docs.lemonsqueezy.com/api/license-api, /api/license-key-instances) and what its users have written down, and has nothing in
 * common with the client of an agent. What no document says is assumed: the order of the checks, and the status with which a
 * validate answers for a key that is disabled or expired (`refusalStatus`), and the text about an unknown instance (`noInstance`).
 */

export interface LemonSqueezySale {
  readonly licenseKey: string;
  /** Default: the first store. */
  readonly storeId?: number;
  readonly email?: string;
  /** Default: 5. */
  readonly limit?: number;
  readonly isDisabled?: boolean;
  /** Epoch ms; null: the key does not expire. */
  readonly expiresAt?: number | null;
  readonly lateMs?: number;
}

type Instance = { id: string; number: number; name: string; createdAt: number };

type LicenseKey = Required<Omit<LemonSqueezySale, 'lateMs'>> &
  SoldKey & {
    id: number;
    createdAt: number;
    instances: Instance[];
  };

type CallName = 'validate' | 'activate' | 'deactivate' | 'instances';

type Call = StandInCall<CallName>;

const verdicts = { validate: 'valid', activate: 'activated', deactivate: 'deactivated' } as const;

const required = {
  validate: ['license_key'],
  activate: ['license_key', 'instance_name'],
  deactivate: ['license_key', 'instance_id'],
} as const;

export class LemonSqueezyStore extends StandIn<CallName, LicenseKey> {
  /** The status of the answer to a validate of a key that is disabled or expired. */
  refusalStatus = 200;
  /** What it says of an instance that it does not know. */
  noInstance = 'license_key_instance not found.';
  /** The seller’s API key. */
  readonly apiKey: string;
  readonly #storeIds: readonly number[];
  #numbers = 0;

  protected override readonly noRoute: StandInAnswer = {
    status: 404,
    body: { message: 'The route could not be found.' },
  };

  protected override readonly limited: StandInPage = {
    status: 429,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ message: 'Too Many Attempts.' }),
  };

  constructor(
    storeIds: readonly number[],
    { apiKey = 'lemonsqueezy-api-key', now }: { apiKey?: string; now?: () => number } = {},
  ) {
    super(now);
    this.apiKey = apiKey;
    this.#storeIds = storeIds;
  }

  sell({ licenseKey, lateMs = 0, ...sale }: LemonSqueezySale): void {
    this.sold.set(this.fold(licenseKey), {
      licenseKey,
      storeId: this.#storeIds[0] ?? 0,
      email: 'buyer@example.com',
      limit: 5,
      isDisabled: false,
      expiresAt: null,
      ...sale,
      id: this.#next(),
      createdAt: this.now(),
      shownFrom: this.now() + lateMs,
      instances: [],
    });
  }

  /** Another program activates a key. Returns the id of the instance. */
  activate(licenseKey: string, name: string): string {
    return this.#add(this.license(licenseKey), name).id;
  }

  /** The customer, or another program, gives a seat back. */
  deactivate(licenseKey: string, id: string): void {
    const { instances } = this.license(licenseKey);
    instances.splice(instances.findIndex((each) => each.id === id) >>> 0, 1);
  }

  protected override nameOf(method: string, path: string): CallName | null {
    if (method === 'GET' && path === '/v1/license-key-instances') return 'instances';
    const [, name] = /^\/v1\/licenses\/(validate|activate|deactivate)$/.exec(path) ?? [];
    return method === 'POST' && name !== undefined ? (name as CallName) : null;
  }

  /** The keys are UUIDs. */
  protected override fold(licenseKey: string): string {
    return licenseKey.trim().toLowerCase();
  }

  protected override carryOut(call: Call): StandInAnswer {
    if (call.name === 'instances') return this.#list(call);
    const absent = required[call.name].filter((name) => textOf(call.parameters[name]).trim() === '');
    if (absent.length > 0) return unprocessable(absent);
    const key = this.find(call.licenseKey);
    if (key === null) return refused(call.name, 'license_key not found.');
    switch (call.name) {
      case 'validate':
        return this.#validate(call, key);
      case 'activate':
        return this.#activate(call, key);
      case 'deactivate':
        return this.#deactivate(call, key);
      default:
        return call.name satisfies never;
    }
  }

  #validate(call: Call, key: LicenseKey): StandInAnswer {
    const id = textOf(call.parameters['instance_id']);
    const instance = key.instances.find((each) => each.id === id) ?? null;
    const error = this.#errorOf(key);
    if (error === null && id !== '' && instance === null) return refused('validate', this.noInstance);
    return {
      status: error === null ? 200 : this.refusalStatus,
      body: {
        valid: error === null,
        error,
        ...this.#shown(key),
        instance: instanceOf(instance),
        ...metaOf(key),
      },
    };
  }

  #activate(call: Call, key: LicenseKey): StandInAnswer {
    const isFull = key.instances.length >= key.limit;
    const full = isFull ? 'This license key has reached the activation limit.' : null;
    const error = this.#errorOf(key) ?? full;
    if (error !== null)
      return { status: 400, body: { activated: false, error, ...this.#shown(key), ...metaOf(key) } };
    // No two calls are the same call: each of them makes an instance, whatever its name.
    const instance = this.#add(key, textOf(call.parameters['instance_name']));
    call.counted = 1;
    const shown = { ...this.#shown(key), instance: instanceOf(instance), ...metaOf(key) };
    return { status: 200, body: { activated: true, error: null, ...shown } };
  }

  #deactivate(call: Call, key: LicenseKey): StandInAnswer {
    const at = key.instances.findIndex(({ id }) => id === call.parameters['instance_id']);
    if (at < 0) return refused('deactivate', this.noInstance);
    key.instances.splice(at, 1);
    call.counted = -1;
    return { status: 200, body: { deactivated: true, error: null, ...this.#shown(key), ...metaOf(key) } };
  }

  #list({ headers, parameters }: Call): StandInAnswer {
    if (headers.authorization !== `Bearer ${this.apiKey}`)
      return { status: 401, body: { errors: [{ detail: 'Unauthenticated.', status: '401' }] } };
    const id = parameters['filter[license_key_id]'];
    const key = [...this.sold.values()].find((each) => String(each.id) === id);
    const size = Number(parameters['page[size]'] ?? 10);
    const latest = (key?.instances ?? []).toReversed().slice(0, size);
    return {
      status: 200,
      body: {
        meta: { page: { currentPage: 1, perPage: size, total: key?.instances.length ?? 0 } },
        jsonapi: { version: '1.0' },
        data: latest.map((each) => ({
          type: 'license-key-instances',
          id: String(each.number),
          attributes: {
            license_key_id: key?.id,
            identifier: each.id,
            name: each.name,
            created_at: dateOf(each.createdAt),
            updated_at: dateOf(each.createdAt),
          },
        })),
      },
    };
  }

  #add(key: LicenseKey, name: string): Instance {
    const number = this.#next();
    const id = `${String(number).padStart(8, '0')}-fd83-46a5-8bbd-44a241e78665`;
    const instance = { id, number, name, createdAt: this.now() };
    key.instances.push(instance);
    return instance;
  }

  #next(): number {
    this.#numbers += 1;
    return this.#numbers;
  }

  #statusOf({ isDisabled, expiresAt, instances }: LicenseKey): string {
    if (isDisabled) return 'disabled';
    if (expiresAt !== null && expiresAt <= this.now()) return 'expired';
    return instances.length > 0 ? 'active' : 'inactive';
  }

  #errorOf(key: LicenseKey): string | null {
    const status = this.#statusOf(key);
    if (status === 'disabled') return 'license_key is disabled.';
    return status === 'expired' ? 'This license key is expired.' : null;
  }

  #shown(key: LicenseKey): object {
    return {
      license_key: {
        id: key.id,
        status: this.#statusOf(key),
        key: key.licenseKey,
        activation_limit: key.limit,
        activation_usage: key.instances.length,
        created_at: dateOf(key.createdAt),
        expires_at: key.expiresAt === null ? null : dateOf(key.expiresAt),
        test_mode: true,
      },
    };
  }
}

function refused(name: keyof typeof verdicts, error: string): StandInAnswer {
  return {
    status: 404,
    body: { [verdicts[name]]: false, error, license_key: null, instance: null, meta: null },
  };
}

/** As the web framework of Lemon Squeezy answers. */
function unprocessable(names: readonly string[]): StandInAnswer {
  const textFor = (name: string): string => `The ${name.replace('_', ' ')} field is required.`;
  const errors = Object.fromEntries(names.map((name) => [name, [textFor(name)]]));
  const more = names.length === 1 ? '' : ` (and ${names.length - 1} more error)`;
  return { status: 422, body: { message: `${textFor(names[0] ?? '')}${more}`, errors } };
}

function instanceOf(instance: Instance | null): object | null {
  return instance && { id: instance.id, name: instance.name, created_at: dateOf(instance.createdAt) };
}

function metaOf({ storeId, email }: LicenseKey): object {
  return {
    meta: {
      store_id: storeId,
      order_id: 2,
      order_item_id: 3,
      product_id: 4,
      product_name: 'Example Product',
      variant_id: 5,
      variant_name: 'Default',
      customer_id: 6,
      customer_name: 'Luke Skywalker',
      customer_email: email,
    },
  };
}

function dateOf(epochMs: number): string {
  return new Date(epochMs).toISOString().replace('Z', '000Z');
}
