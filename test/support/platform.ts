export const isWindows: boolean = process.platform === 'win32';

/** The permission bits of a file that only its owner can use. Windows has no such bits: Node shows 666. */
export const ownerOnly: string = isWindows ? '666' : '600';
