// Checks the lease of a license key with the public root keys of the vendor.
using System;
using System.Linq;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;
using System.Xml;

public static class Lease
{
    // What `latchkey lease setup` prints. A program that reads these from a file can be given others.
    const string Issuer = "https://licenses.example.com";
    public const string Product = "RGsF";
    const long MinKeysVersion = 1;
    /// <summary>x and y of each. While there are none, the program asks an agent, and believes what answers on its port.</summary>
    public static readonly string[][] Roots = { };

    static readonly string[] States = { "disabled", "ended", "blocked", "replaced" };
    static readonly Regex Generated = new Regex(@"\A[A-HJ-NP-Z2-9]{5}(-[A-HJ-NP-Z2-9]{5}){3}\z", RegexOptions.IgnoreCase);

    /// <summary>Whether a key has signed (ES256). Mono, which has no ECDSA, needs another function.</summary>
    public static Func<ECParameters, byte[], byte[], bool> HasSigned = (key, signed, signature) =>
    {
        using (ECDsa ecdsa = ECDsa.Create(key)) return ecdsa.VerifyData(signed, signature, HashAlgorithmName.SHA256);
    };

    /// <summary>The answer proves nothing: this is not a "no".</summary>
    public sealed class NotProven : Exception
    {
        public NotProven(string reason) : base(reason) { }
    }

    /// <summary>Gives the verdict of an answer, the version of its keys, and what the license unlocks.</summary>
    public static string Check(XmlDocument answer, string licenseKey, string nonce, long seenVersion, out long version, out string[] entitlements)
    {
        if (licenseKey == null || string.IsNullOrEmpty(nonce)) throw new ArgumentException("licenseKey and nonce must be texts, and nonce not empty");
        XmlNode signedBy;
        var statement = Open(Text(answer, "data/keys"), "latchkey-keys+jwt", header => Roots
            .Select(root => Key("EC", "P-256", root[0], root[1])).FirstOrDefault(key => Thumbprint(key) == Text(header, "kid")), out signedBy);
        version = Number(statement, "version");
        Ensure(Text(statement, "iss") == Issuer, "the key statement is of another issuer");
        Ensure(version >= Math.Max(MinKeysVersion, seenVersion), "the key statement is older than one that was seen");
        Func<XmlDocument, XmlNode> signing = header => statement.SelectNodes("/root/keys/item/jwk").Cast<XmlNode>()
            .FirstOrDefault(key => Thumbprint(key) == Text(header, "kid"));
        string signed = Text(answer, "data/lease");
        bool isLease = signed != null;
        signed = signed ?? Text(answer, "data/notice");
        var claims = Open(signed, isLease ? "latchkey-lease+jwt" : "latchkey-notice+jwt", signing, out signedBy);
        long until = Number(claims, isLease ? "exp" : "issued_at");
        Ensure(Text(claims, "iss") == Issuer, "it is of another issuer");
        Ensure(until <= Number(signedBy, "../not_after"), "it is valid for longer than its key");
        licenseKey = licenseKey.Trim();
        if (Generated.IsMatch(licenseKey)) licenseKey = licenseKey.ToUpperInvariant();
        Ensure(Text(claims, isLease ? "license/license_key" : "license_key") == licenseKey, "it is for another license key");
        Ensure(isLease || States.Contains(Text(claims, "state")), "the notice has another state");
        Ensure(!isLease || Text(claims, "aud") == Product, "the lease is for another product");
        Ensure(!isLease || DateTimeOffset.UtcNow.ToUnixTimeSeconds() < until, "the lease has expired");
        var enabled = claims.SelectSingleNode("/root/license/enabled[@type='boolean' and .='true']");
        Ensure(!isLease || enabled != null, "the license is not enabled");
        if (Text(claims, "nonce") != nonce || Text(answer, "data/proof") != null)
            CheckProof(Text(answer, "data/proof"), signed, Text(claims, "cnf/jkt"), nonce);
        entitlements = claims.SelectNodes("/root/license/entitlements/item").Cast<XmlNode>().Select(item => item.InnerText).ToArray();
        // A license that has ended is disabled, and says when it ended.
        bool isExpired = claims.SelectSingleNode("/root/expired_at") != null;
        return isLease ? "valid" : "refused: " + (isExpired ? "expired" : Text(claims, "state"));
    }

    /// <summary>The device that the document names has signed the nonce: this is no recorded answer, and none for another device.</summary>
    static void CheckProof(string proof, string document, string device, string nonce)
    {
        XmlNode signedBy;
        var claims = Open(proof, "latchkey-proof+jwt", header => header.SelectSingleNode("/root/jwk"), out signedBy);
        Ensure(signedBy.ChildNodes.Count == 4 && Thumbprint(signedBy) == device, "the proof is signed by another device");
        Ensure(Text(claims, "aud") == Product, "the proof is for another product");
        Ensure(Text(claims, "nonce") == nonce, "the proof is for another nonce");
        Ensure(Text(claims, "lease_hash") == Sha256(document.Substring(0, document.LastIndexOf('.'))), "the proof is for another document");
    }

    /// <summary>Gives the claims of a document with exactly the header of its type, and the key that has signed it.</summary>
    static XmlDocument Open(string document, string typ, Func<XmlDocument, XmlNode> keyOf, out XmlNode key)
    {
        string[] parts = (document ?? "").Split('.');
        Ensure(parts.Length == 3, "there is no " + typ);
        XmlDocument header = LicenseCheck.Parse(Decode(parts[0]));
        bool isExact = header.SelectNodes("/root/*").Count == 3 && Text(header, "alg") == "ES256" && Text(header, "typ") == typ;
        key = keyOf(header);
        Ensure(isExact && key != null, "the header is not the one of " + typ + ", or names an unknown key");
        Ensure(Text(key, "kty") == "EC" && Text(key, "crv") == "P-256", "the key is not one of P-256");
        var point = new ECPoint { X = Decode(Text(key, "x") ?? ""), Y = Decode(Text(key, "y") ?? "") };
        var parameters = new ECParameters { Curve = ECCurve.NamedCurves.nistP256, Q = point };
        byte[] signed = Encoding.ASCII.GetBytes(parts[0] + "." + parts[1]), signature = Decode(parts[2]);
        Ensure(signature.Length == 64 && HasSigned(parameters, signed, signature), "the signature is wrong");
        return LicenseCheck.Parse(Decode(parts[1]));
    }

    /// <summary>The name of a key (RFC 7638).</summary>
    static string Thumbprint(XmlNode key)
    {
        string[] members = { Text(key, "crv"), Text(key, "kty"), Text(key, "x"), Text(key, "y") };
        return Sha256(string.Format("{{\"crv\":\"{0}\",\"kty\":\"{1}\",\"x\":\"{2}\",\"y\":\"{3}\"}}", members));
    }

    static XmlNode Key(params string[] members)
    {
        string json = string.Format("{{\"kty\":\"{0}\",\"crv\":\"{1}\",\"x\":\"{2}\",\"y\":\"{3}\"}}", members);
        return LicenseCheck.Parse(Encoding.ASCII.GetBytes(json)).DocumentElement;
    }

    /// <summary>A text, which stays null unless it is one.</summary>
    static string Text(XmlNode node, string path)
    {
        XmlNode found = (node is XmlDocument ? ((XmlDocument)node).DocumentElement : node).SelectSingleNode(path + "[@type='string']");
        return found == null ? null : found.InnerText;
    }

    static long Number(XmlNode node, string path)
    {
        XmlNode found = (node is XmlDocument ? ((XmlDocument)node).DocumentElement : node).SelectSingleNode(path + "[@type='number']");
        Ensure(found != null, "there is no number " + path);
        return long.Parse(found.InnerText);
    }

    static byte[] Decode(string text)
    {
        Ensure(!text.Contains("="), "it is not base64url");
        return Convert.FromBase64String(text.Replace('-', '+').Replace('_', '/') + new string('=', (4 - text.Length % 4) % 4));
    }

    static string Sha256(string text)
    {
        using (SHA256 hash = SHA256.Create())
        {
            string encoded = Convert.ToBase64String(hash.ComputeHash(Encoding.ASCII.GetBytes(text)));
            return encoded.TrimEnd('=').Replace('+', '-').Replace('/', '_');
        }
    }

    static void Ensure(bool isTrue, string otherwise)
    {
        if (!isTrue) throw new NotProven(otherwise);
    }
}
