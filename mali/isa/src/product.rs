// SPDX-License-Identifier: MIT OR Apache-2.0
//! Bifrost products and their instructions.

use core::fmt;

/// Bifrost product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Product {
    /// Mali-G71, architecture version 6.
    G71,
    /// Mali-G72, architecture version 6.
    G72,
    /// Mali-G51, architecture version 7.
    G51,
    /// Mali-G31, architecture version 7.
    G31,
    /// Mali-G52, architecture version 7.
    G52,
    /// Mali-G76, architecture version 7.
    G76,
}

impl Product {
    /// Every product.
    pub const ALL: [Product; 6] = [
        Product::G71,
        Product::G72,
        Product::G51,
        Product::G31,
        Product::G52,
        Product::G76,
    ];

    /// Name like `Mali-G52`.
    pub const fn name(self) -> &'static str {
        match self {
            Product::G71 => "Mali-G71",
            Product::G72 => "Mali-G72",
            Product::G51 => "Mali-G51",
            Product::G31 => "Mali-G31",
            Product::G52 => "Mali-G52",
            Product::G76 => "Mali-G76",
        }
    }

    /// Finds a product by name.
    pub fn by_name(name: &str) -> Option<Product> {
        Product::ALL
            .into_iter()
            .find(|product| product.name() == name)
    }
}

impl fmt::Display for Product {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Set of products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Products(u8);

impl Products {
    /// Set of these products.
    pub const fn of(products: &[Product]) -> Products {
        let (mut bits, mut index) = (0, 0);
        while index < products.len() {
            bits |= 1 << products[index] as u8;
            index += 1;
        }
        Products(bits)
    }

    /// Whether a product is in it.
    pub const fn contains(self, product: Product) -> bool {
        self.0 >> product as u8 & 1 == 1
    }

    /// Products in order.
    pub fn iter(self) -> impl Iterator<Item = Product> {
        Product::ALL
            .into_iter()
            .filter(move |product| self.contains(*product))
    }
}

/// Why some products have an instruction and others lack it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProductEvidence {
    /// Mesa's description, for all products.
    Description,
    /// Mesa's compiler emits it for these only (`bifrost_get_quirks`).
    Compiler,
    /// Recordings of Mali-G71 silicon; Mali-G72 has the same version. Nothing shows it on version 7.
    Silicon,
    /// Nothing shows it on any product.
    Nothing,
}

impl ProductEvidence {
    /// Evidence in words.
    pub const fn name(self) -> &'static str {
        match self {
            ProductEvidence::Description => "in Mesa's description, for all products",
            ProductEvidence::Compiler => "Mesa's compiler emits it for these products only",
            ProductEvidence::Silicon => {
                "seen in recordings of Mali-G71 silicon; nothing shows it on architecture version 7"
            }
            ProductEvidence::Nothing => "nothing shows it on any product",
        }
    }
}
